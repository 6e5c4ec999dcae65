"""``attach``: standard input and output tied to a keeper's socket, as an SSH channel needs it.

It is started anew whenever a connection was lost, on slow machines: it loads next to nothing.
"""

import _thread
import os
import socket
import sys

SOCKET = "keeper.sock"
EXIT_NO_KEEPER = 4
_CONNECT_S = 5.0
_CHUNK = 65536


def connect(place: str) -> socket.socket:
    """Goes to that directory: a socket's path must be short, a run's need not be. Raises OSError."""
    os.chdir(place)
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(_CONNECT_S)
        connection.connect(SOCKET)
    except BaseException:
        connection.close()
        raise
    return connection


def attach(place: str) -> int:
    """Until either side ends."""
    try:
        connection = connect(place)
    except OSError as error:
        print(f"{place}: no keeper answers here ({error.strerror or error})", file=sys.stderr)
        return EXIT_NO_KEEPER
    connection.settimeout(None)
    ended = _thread.allocate_lock()
    ended.acquire()
    own = connection.fileno()
    for source, sink in ((0, own), (own, 1)):
        _thread.start_new_thread(_carry, (source, sink, ended))
    ended.acquire()
    return 0


def _carry(source: int, sink: int, ended: "_thread.LockType") -> None:
    try:
        while data := os.read(source, _CHUNK):
            while data:
                data = data[os.write(sink, data) :]
    except OSError:
        pass  # the same as an end
    finally:
        if ended.locked():
            ended.release()
