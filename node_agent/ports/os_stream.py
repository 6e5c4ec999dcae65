"""A TCP connection as a ``node_agent.ports.Stream``."""

import asyncio
import socket
import struct
from collections.abc import Callable
from contextlib import suppress

from node_agent.ports import Address, Buffer, ConnectionLost, EndOfStream, Stream

READ_AHEAD = 256 * 1024
FIRST_READ_AHEAD = 4 * 1024
"""The limit until the peer has proved who it is: an unknown connection costs no more than this."""
LEAST_ROOM = 64 * 1024
NOWHERE = Address("unknown", 0)
"""The peer of a connection that was reset before it was read."""
LINGER_S = 2.0
IDLE_S = 6
PROBE_S = 2
DEAD_AFTER_MS = 30_000
"""Longer than the virtual stream's: to Linux, a peer that keeps its window shut looks dead, too."""

_GIVE_UP, _KEEP_TRYING = struct.pack("ii", 1, 0), struct.pack("ii", 0, 0)
"""SO_LINGER values: what the kernel does with undelivered bytes when the socket is closed."""

_OPTIONS = (
    (socket.SOL_SOCKET, "SO_KEEPALIVE", 1),
    (socket.IPPROTO_TCP, "TCP_NODELAY", 1),
    (socket.IPPROTO_TCP, "TCP_KEEPIDLE", IDLE_S),
    (socket.IPPROTO_TCP, "TCP_KEEPINTVL", PROBE_S),
    (socket.IPPROTO_TCP, "TCP_USER_TIMEOUT", DEAD_AFTER_MS),
)


class Arrived:
    """Buffers arrived bytes until they are read. The kernel writes directly into it; reading copies."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._begin = 0
        self._end = 0

    @property
    def count(self) -> int:
        return self._end - self._begin

    def free(self, most: int) -> memoryview:
        """Returns where to write the next bytes. ``most``: about how much may wait here."""
        room, least = len(self._buffer) - self._end, min(most, LEAST_ROOM)
        if room < least or room + self.count < most:
            self._tidy(most + least, least)
        return memoryview(self._buffer)[self._end :]

    def grow(self, count: int) -> None:
        """Notes that ``count`` bytes were written there."""
        self._end += count

    def take(self, count: int) -> bytes:
        """Returns the first ``count`` bytes, which must have arrived."""
        begin, self._begin = self._begin, self._begin + count
        data = bytes(memoryview(self._buffer)[begin : self._begin])
        if self._begin == self._end:
            self._begin = self._end = 0
        return data

    def clear(self) -> None:
        self._begin = self._end = 0

    def _tidy(self, capacity: int, least: int) -> None:
        """Moves the waiting bytes to the front of a buffer of about the needed size."""
        waiting = memoryview(self._buffer)[self._begin : self._end]
        if not capacity <= len(self._buffer) <= 2 * capacity:
            self._buffer = bytearray(max(capacity, len(waiting) + least))
        memoryview(self._buffer)[: len(waiting)] = waiting
        self._begin, self._end = 0, len(waiting)


class OsStream(asyncio.BufferedProtocol):
    def __init__(self, on_open: Callable[[Stream], None] | None = None) -> None:
        self._on_open = on_open
        self._transport: asyncio.Transport
        self._peer = NOWHERE
        self._arrived = Arrived()
        self._read_ahead = FIRST_READ_AHEAD
        self._received = 0
        self._wanted = 0
        self._eof = False
        self._closing = False
        self._lost: str | None = None
        self._reading_paused = False
        self._writing_paused = False
        self._reader: asyncio.Future[None] | None = None
        self._writers: list[asyncio.Future[None]] = []
        self._linger: asyncio.TimerHandle | None = None

    @property
    def peer(self) -> Address:
        return self._peer

    async def read_exactly(self, count: int) -> bytes:
        if self._reader is not None:
            raise RuntimeError("two coroutines read from the same stream")
        while self._arrived.count < count or self._closing:
            if self._eof and not self._closing:
                raise EndOfStream(f"{self._peer.host}:{self._peer.port} closed the stream")
            self._raise_if_over()
            self._wanted = count
            self._resume_reading()
            self._reader = asyncio.get_running_loop().create_future()
            try:
                await self._reader
            finally:
                self._reader = None
                self._wanted = 0
        data = self._arrived.take(count)
        if self._arrived.count < self._read_ahead:
            self._resume_reading()
        return data

    def read_ahead(self) -> None:
        self._read_ahead = READ_AHEAD
        if not self._closing and self._lost is None:
            self._resume_reading()

    @property
    def received(self) -> int:
        return self._received

    @property
    def unsent(self) -> int:
        return self._transport.get_write_buffer_size()

    def put(self, *data: Buffer) -> None:
        self._raise_if_over()
        self._transport.writelines(data)

    async def drained(self) -> None:
        self._raise_if_over()
        while self._writing_paused:
            waiter = asyncio.get_running_loop().create_future()
            self._writers.append(waiter)
            await waiter
            self._raise_if_over()

    async def write(self, data: Buffer) -> None:
        self._raise_if_over()
        self._transport.write(data)
        await self.drained()

    def close(self) -> None:
        """Sends end-of-stream, then waits a little for the peer's.

        Closing at once would make the kernel answer unread bytes with a reset, which may overtake our own
        data.
        """
        if self._closing or self._lost is not None:
            return
        self._closing = True
        self._arrived.clear()
        self._resume_reading()
        try:
            if self._eof:
                self._leave_to_kernel()
            else:
                self._transport.write_eof()
                self._linger = asyncio.get_running_loop().call_later(LINGER_S, self._leave_to_kernel)
        except OSError:  # the peer has reset it; we have not been notified yet
            self._transport.abort()
        self._wake_all()

    def abort(self) -> None:
        if self._lost is None:
            self._closing = True
            self._lost = "aborted"
            self._transport.abort()
            self._wake_all()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport
        try:
            self._set_up(transport)
        except OSError as error:  # the peer has reset it already
            self._lost = str(error)
            transport.abort()
        if self._on_open is not None:
            self._on_open(self)

    def _set_up(self, transport: asyncio.Transport) -> None:
        """Sets the socket's options. Raises OSError."""
        if (
            name := transport.get_extra_info("peername")
        ) is not None:  # uvloop gives none if the peer is gone
            self._peer = Address(*name[:2])
        connection = transport.get_extra_info("socket")
        # Reset the stream unless it is closed in order, also if this process is killed: otherwise the kernel
        # would send an orderly end, and keep trying for long.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _GIVE_UP)
        for level, name, value in _OPTIONS:
            if (option := getattr(socket, name, None)) is not None:  # some exist on Linux only
                connection.setsockopt(level, option, value)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._arrived.free(max(self._wanted, self._read_ahead))

    def buffer_updated(self, nbytes: int) -> None:
        self._received += nbytes
        if self._closing:
            return
        self._arrived.grow(nbytes)
        readable = self._arrived.count
        if readable >= max(self._wanted, self._read_ahead) and not self._reading_paused:
            self._reading_paused = True
            self._transport.pause_reading()
        if readable >= self._wanted:
            _wake(self._reader)

    def eof_received(self) -> bool:
        self._eof = True
        if self._closing:
            self._leave_to_kernel()
        _wake(self._reader)
        return True  # our own direction stays open

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost = self._lost or str(exc or "closed")
        if self._linger is not None:
            self._linger.cancel()
        self._wake_all()

    def pause_writing(self) -> None:
        self._writing_paused = True

    def resume_writing(self) -> None:
        self._writing_paused = False
        self._wake_all()

    def _leave_to_kernel(self) -> None:
        """Closes the socket; the kernel goes on delivering what was written."""
        connection = self._transport.get_extra_info("socket")
        with suppress(OSError):  # the peer has reset it
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _KEEP_TRYING)
        self._transport.close()

    def _resume_reading(self) -> None:
        if self._reading_paused:
            self._reading_paused = False
            self._transport.resume_reading()

    def _raise_if_over(self) -> None:
        if self._lost is not None or self._closing:
            raise ConnectionLost(f"stream with {self._peer.host}:{self._peer.port}: {self._lost or 'closed'}")

    def _wake_all(self) -> None:
        _wake(self._reader)
        for waiter in self._writers:
            _wake(waiter)
        self._writers.clear()


def _wake(waiter: "asyncio.Future[None] | None") -> None:
    if waiter is not None and not waiter.done():
        waiter.set_result(None)
