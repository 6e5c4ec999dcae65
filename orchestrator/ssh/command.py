"""Runs one command on a host and returns its status and output. Blocking: use it in a thread."""

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

import paramiko
from paramiko.ssh_exception import SSHException

from orchestrator.ssh.errors import CommandFailed, Unreachable

MOST_OUTPUT = 4 * 1024 * 1024
"""Bytes kept of each stream; the rest is read and dropped, so that the command can end."""
MOST_READ = 64 * 1024 * 1024
"""A command with more output on one stream is aborted."""
CHUNK = 64 * 1024
_OPEN_S = 15.0
SIGNALLED = -1
_SETTLE_S = 0.5


def is_gone(transport: paramiko.Transport) -> bool:
    """Says whether the transport is gone, too, after it lost a channel. A dying one ends its channels before
    it says so.
    """
    transport.join(_SETTLE_S)
    return not transport.is_active()


def end_input(channel: paramiko.Channel) -> None:
    """Tells the host that the input has ended.

    Not by ``shutdown_write``, which sends after it released the channel's lock: perhaps after another
    thread's CLOSE, and sshd ends the whole connection for an EOF on a closed channel.
    """
    with channel.lock:
        message = channel._send_eof()  # type: ignore[attr-defined]
        if message is not None and channel.transport is not None:
            channel.transport._send_user_message(message)  # type: ignore[attr-defined]


class Completed(NamedTuple):
    """``status`` is SIGNALLED for a command that a signal ended."""

    status: int
    stdout: bytes
    stderr: bytes
    truncated: bool = False
    """There was more output than is kept."""


class Session:
    """A channel on which the host's shell runs ``line``, a quoted command line."""

    def __init__(self, host: str, transport: paramiko.Transport, line: str) -> None:
        self.host = host
        self.transport = transport
        self._line = line
        self._channel: paramiko.Channel | None = None
        self._given_up = False

    def begin(self) -> paramiko.Channel:
        try:
            channel = self._channel = self.transport.open_session(timeout=_OPEN_S)
            channel.exec_command(self._line)
        except (SSHException, EOFError, OSError) as error:
            self.abort()
            lost = "the connection is lost" if is_gone(self.transport) else "does not answer any more"
            raise Unreachable(self.host, lost) from error
        if self._given_up:
            channel.close()
        return channel

    def abort(self) -> None:
        """Ends the session. May be called from any thread, at any time."""
        self._given_up = True
        if self._channel is not None:
            self._channel.close()


class Command:
    """``abort`` ends ``execute``."""

    def __init__(self, session: Session, given: bytes = b"") -> None:
        self._session = session
        self._given = given
        self.abort = session.abort

    def execute(self) -> Completed:
        with self._session.begin() as channel:
            threading.Thread(target=self._feed, args=(channel,), daemon=True).start()
            stderr = _StreamHead(channel.recv_stderr, channel.close)
            complaining = threading.Thread(target=stderr.read, daemon=True)
            complaining.start()
            stdout = _StreamHead(channel.recv, channel.close)
            stdout.read()
            if stdout.flooded or stderr.flooded:
                raise CommandFailed(self._session.host, f"a command wrote more than {MOST_READ} bytes")
            complaining.join()
            status = channel.recv_exit_status()
        if status < 0 and (not channel.eof_received or is_gone(self._session.transport)):
            raise Unreachable(self._session.host, "the connection was lost while a command ran")
        return Completed(status, bytes(stdout.kept), bytes(stderr.kept), stdout.dropped or stderr.dropped)

    def _feed(self, channel: paramiko.Channel) -> None:
        with suppress(OSError, SSHException, EOFError):  # a command need not read all its input
            channel.sendall(self._given)
            end_input(channel)


class _StreamHead:
    """Keeps the beginning of a stream. A stream beyond the limit is ``flooded``, and given up."""

    def __init__(self, receive: Callable[[int], bytes], give_up: Callable[[], None]) -> None:
        self.kept = bytearray()
        self.dropped = False
        self.flooded = False
        self._receive = receive
        self._give_up = give_up

    def read(self) -> None:
        read = 0
        while data := self._receive(CHUNK):
            read += len(data)
            room = MOST_OUTPUT - len(self.kept)
            self.kept += data[:room]
            self.dropped = self.dropped or len(data) > room
            if read > MOST_READ:
                self.flooded = True
                self._give_up()
                return
