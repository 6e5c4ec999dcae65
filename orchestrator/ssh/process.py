"""A long-lived program on a host, with its standard streams as asyncio streams here.

A socket pair is between them: threads carry bytes to and from the SSH channel, as fast as they are read.
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
"""The limit of a line that the program writes: a longer one is an error."""
MOST_STDERR = 16 * 1024 * 1024
_SHELL_SIGNALLED = 128
_JOIN_S = 5.0


class RemoteProcess:
    """Must be closed: a program that reads its standard input then ends."""

    def __init__(self, channel: paramiko.Channel) -> None:
        self.reader: asyncio.StreamReader
        self.writer: asyncio.StreamWriter
        self._channel = channel
        self._socket: socket.socket
        self._threads: list[threading.Thread] = []
        self._ended: asyncio.Future[int | None] = asyncio.get_running_loop().create_future()

    @classmethod
    async def over(cls, channel: paramiko.Channel, stderr: BinaryIO) -> "RemoteProcess":
        """Carries the streams of the program on ``channel``; closes the stderr file at the end."""
        process = cls(channel)
        ours, theirs = socket.socketpair()
        process._socket = theirs
        process.reader, process.writer = await asyncio.open_unix_connection(sock=ours, limit=LONGEST_LINE)
        loop = asyncio.get_running_loop()

        def report(status: int | None) -> None:
            with suppress(RuntimeError):  # the loop is closed: nobody waits
                loop.call_soon_threadsafe(process._end, status)

        process._run(_carry_in, theirs, channel)
        process._run(_carry_out, channel, theirs, report)
        process._run(_store_stderr, channel, stderr)
        return process

    async def wait(self) -> int | None:
        """Returns the exit status; SIGNALLED if a signal ended it; None if the connection was lost."""
        return await asyncio.shield(self._ended)

    async def close(self) -> None:
        """Closes the streams, within a time limit even if the host does not answer. May be repeated."""
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


def _carry_out(channel: paramiko.Channel, sink: socket.socket, report: Callable[[int | None], None]) -> None:
    with suppress(OSError):  # nobody reads any more
        while data := channel.recv(CHUNK):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    status: int | None = channel.recv_exit_status()
    if status == SIGNALLED and _is_lost(channel):
        status = None
    with suppress(OSError):
        sink.shutdown(socket.SHUT_RDWR)
    report(status)


def _is_lost(channel: paramiko.Channel) -> bool:
    """Was the connection lost? A host that is there reports the end of the program itself."""
    return not channel.eof_received or is_gone(channel.get_transport())


def how_it_ended(status: int) -> str:
    """Describes ``ended with status 3``, or the signal: shells report that by a status above 128."""
    if status == SIGNALLED:
        return "was killed by a signal"
    if status > _SHELL_SIGNALLED and (name := _signal_name(status - _SHELL_SIGNALLED)):
        return f"was killed by {name}"
    return f"ended with status {status}"


def _signal_name(number: int) -> str:
    return signal.Signals(number).name if number in {*signal.Signals} else ""


def _store_stderr(channel: paramiko.Channel, file: BinaryIO) -> None:
    left = MOST_STDERR
    with file:
        while data := channel.recv_stderr(CHUNK):
            with suppress(OSError):  # a full disk here must not delay the program there
                file.write(data[:left])
            left -= min(left, len(data))
