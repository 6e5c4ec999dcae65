"""``attach``: connects standard input and output to a supervisor's socket, as an SSH channel needs it.

It is started again after every lost connection, on slow machines, so it imports almost nothing.
"""

import _thread
import errno
import os
import socket
import sys

SOCKET = "supervisor.sock"
EXIT_NO_SUPERVISOR = 4
_CONNECT_S = 5.0
_LAST_WORDS_S = 2.0
_CHUNK = 65536
_CREDENTIALS = 12
"""Bytes of SO_PEERCRED: process, user and group of the other end."""


def connect(place: str) -> socket.socket:
    """Changes to that directory, because a socket's path must be short.
    Raises OSError, also if another user listens."""
    os.chdir(place)
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(_CONNECT_S)
        connection.connect(SOCKET)
        if not is_own(connection):
            raise PermissionError(errno.EPERM, "another user listens there")
    except BaseException:
        connection.close()
        raise
    return connection


def is_own(connection: socket.socket) -> bool:
    """Says whether the process at the other end belongs to this user or to root."""
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS)
    user = int.from_bytes(credentials[4:8], sys.byteorder)
    return user in (0, os.geteuid())


def attach(place: str) -> int:
    """Passes data on until either side ends;
    after the end of the input, also the supervisor's last answers.
    """
    try:
        connection = connect(place)
    except OSError as error:
        print(f"{place}: no supervisor answers here ({error.strerror or error})", file=sys.stderr)
        return EXIT_NO_SUPERVISOR
    connection.settimeout(None)
    ended, answered = _thread.allocate_lock(), _thread.allocate_lock()
    ended.acquire()
    answered.acquire()
    own = connection.fileno()
    _thread.start_new_thread(_carry, (0, own, ended))
    _thread.start_new_thread(_carry, (own, 1, ended, answered))
    ended.acquire()
    try:
        connection.shutdown(socket.SHUT_WR)
    except OSError:
        return 0  # the supervisor has ended
    answered.acquire(timeout=_LAST_WORDS_S)
    return 0


def _carry(source: int, sink: int, *ends: "_thread.LockType") -> None:
    try:
        while data := os.read(source, _CHUNK):
            while data:
                data = data[os.write(sink, data) :]
    except OSError:
        pass  # the same as an end
    finally:
        for end in ends:
            if end.locked():
                end.release()
