"""A long-lived program on a host whose standard streams are asyncio streams here.

A socket pair stands between: threads carry bytes to and from the SSH channel, as fast as they are read.
"""

import asyncio
import signal
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import BinaryIO

import paramiko
from paramiko.ssh_exception import SSHException

from orchestrator.ssh.command import CHUNK, SIGNALLED, end_input, is_gone

LONGEST_LINE = 4 * 1024 * 1024
"""Of what the program says: a line that does not end is an error when so much of it has come."""
MOST_STDERR = 16 * 1024 * 1024
_SHELL_SIGNALLED = 128
_JOIN_S = 5.0


class RemoteProcess:
    """Close it: a program that lives by its standard input then ends."""

    def __init__(self, channel: paramiko.Channel) -> None:
        self.reader: asyncio.StreamReader
        self.writer: asyncio.StreamWriter
        self._channel = channel
        self._socket: socket.socket
        self._threads: list[threading.Thread] = []
        self._ended: asyncio.Future[int | None] = asyncio.get_running_loop().create_future()

    @classmethod
    async def over(cls, channel: paramiko.Channel, stderr: BinaryIO) -> "RemoteProcess":
        """Carry the streams of what has begun on ``channel``; the file of its stderr is closed at the end."""
        process = cls(channel)
        ours, theirs = socket.socketpair()
        process._socket = theirs
        process.reader, process.writer = await asyncio.open_unix_connection(sock=ours, limit=LONGEST_LINE)
        loop = asyncio.get_running_loop()

        def tell(status: int | None) -> None:
            with suppress(RuntimeError):  # the loop is closed: nobody waits
                loop.call_soon_threadsafe(process._end, status)

        process._run(_carry_in, theirs, channel)
        process._run(_carry_out, channel, theirs, tell)
        process._run(_keep, channel, stderr)
        return process

    async def wait(self) -> int | None:
        """Its exit status; SIGNALLED if a signal ended it; None if the connection was lost."""
        return await asyncio.shield(self._ended)

    async def close(self) -> None:
        """May be repeated. Bounded: a host that does not answer is not waited for."""
        self.writer.close()
        with suppress(ConnectionError):
            await self.writer.wait_closed()
        await asyncio.to_thread(self._finish)

    def _finish(self) -> None:
        closing = threading.Thread(target=self._channel.close, daemon=True)
        closing.start()
        for thread in (closing, *self._threads):
            thread.join(_JOIN_S)
        if not any(thread.is_alive() for thread in self._threads):
            self._socket.close()

    def _end(self, status: int | None) -> None:
        if not self._ended.done():
            self._ended.set_result(status)

    def _run(self, work: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()


def _carry_in(source: socket.socket, channel: paramiko.Channel) -> None:
    with suppress(OSError, SSHException, EOFError):
        while data := source.recv(CHUNK):
            channel.sendall(data)
        end_input(channel)


def _carry_out(channel: paramiko.Channel, sink: socket.socket, tell: Callable[[int | None], None]) -> None:
    with suppress(OSError):  # nobody reads any more
        while data := channel.recv(CHUNK):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    status: int | None = channel.recv_exit_status()
    if status == SIGNALLED and _is_lost(channel):
        status = None
    with suppress(OSError):
        sink.shutdown(socket.SHUT_RDWR)
    tell(status)


def _is_lost(channel: paramiko.Channel) -> bool:
    """Of one that ended without a status: a host that is there says itself that the program has ended."""
    return not channel.eof_received or is_gone(channel.get_transport())


def how_it_ended(status: int) -> str:
    """``ended with status 3``, or that a signal killed it: shells tell that by a status beyond 128."""
    if status == SIGNALLED:
        return "was killed by a signal"
    if status > _SHELL_SIGNALLED and (name := _signal_name(status - _SHELL_SIGNALLED)):
        return f"was killed by {name}"
    return f"ended with status {status}"


def _signal_name(number: int) -> str:
    return signal.Signals(number).name if number in {*signal.Signals} else ""


def _keep(channel: paramiko.Channel, file: BinaryIO) -> None:
    left = MOST_STDERR
    with file:
        while data := channel.recv_stderr(CHUNK):
            with suppress(OSError):  # a full disk here must not hold up the program there
                file.write(data[:left])
            left -= min(left, len(data))
