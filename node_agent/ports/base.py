"""The interface between an agent and its surroundings: a clock, timers, byte streams and datagrams.

Agents are asyncio programs that use time and network only through a ``Port``. ``os_port`` implements it on
the machine's sockets, ``virtual.port`` on a modelled medium in virtual time; the same agent runs unchanged on
both. Everything in asyncio that uses the loop's clock (sleep, timeout, Queue, Event, TaskGroup) is allowed.
Sets of tasks (``asyncio.wait``) must not be iterated: their order is not reproducible.
"""

import random
from collections.abc import Awaitable, Callable
from typing import NamedTuple, Protocol, TypeVar

T = TypeVar("T")

Buffer = bytes | bytearray | memoryview


class Address(NamedTuple):
    host: str
    port: int


class PortError(Exception):
    """Base of all errors of a port."""


class Unreachable(PortError):
    """No path to the peer, nobody listens there, or the address cannot be used."""


class TimedOut(PortError):
    """The peer did not answer in time."""


class ConnectionLost(PortError):
    """The stream broke before the requested bytes arrived or could be sent."""


class EndOfStream(ConnectionLost):
    """The peer closed the stream in order."""


class Stream(Protocol):
    """A reliable, ordered byte stream with back-pressure."""

    @property
    def peer(self) -> Address: ...

    async def read_exactly(self, count: int) -> bytes:
        """Returns ``count`` bytes. Raises EndOfStream if the peer closed, ConnectionLost if the path died."""
        ...

    def read_ahead(self) -> None:
        """Allows more bytes to arrive than were asked for. Before that
        little does: the peer may be anybody."""
        ...

    @property
    def received(self) -> int:
        """Returns how many bytes have arrived so far, read or not; while it grows, the peer is alive."""
        ...

    @property
    def unsent(self) -> int:
        """Returns how many bytes are in the send buffer."""
        ...

    def put(self, *data: Buffer) -> None:
        """Appends to the send buffer, however full it is; raises ConnectionLost. A caller that sends much
        should watch ``unsent``. The data must not be changed afterwards."""
        ...

    async def drained(self) -> None:
        """Returns once the send buffer has room; raises ConnectionLost."""
        ...

    async def write(self, data: Buffer) -> None:
        """Returns once ``data`` is in the send buffer and the buffer has room again."""
        ...

    def close(self) -> None:
        """Closes in order: written data is still delivered if the path allows. May be repeated."""
        ...

    def abort(self) -> None:
        """Drops the stream and its data at once. May be repeated."""
        ...


class Listener(Protocol):
    @property
    def address(self) -> Address:
        """Returns where it listens, with the port that was chosen if 0 was given."""
        ...

    def close(self) -> None:
        """Stops accepting, and cancels the running handlers. May be repeated."""
        ...


class DatagramSocket(Protocol):
    @property
    def address(self) -> Address: ...

    def send(self, data: bytes, to: Address) -> None:
        """Sends best effort: silently lost where a real datagram would be."""
        ...

    def close(self) -> None: ...


OnStream = Callable[[Stream], Awaitable[None]]
OnDatagram = Callable[[bytes, Address], None]


class Port(Protocol):
    @property
    def clock_name(self) -> str:
        """Returns the clock's name in the telemetry, "real" or "virtual"."""
        ...

    @property
    def host(self) -> str:
        """Returns this node's own address."""
        ...

    @property
    def random(self) -> random.Random:
        """Returns a random number generator;
        seeded per node in virtual time, so that a run can be repeated.
        """
        ...

    def fresh_bytes(self, count: int) -> bytes:
        """Returns unpredictable bytes that were never used before; seeded per node in virtual time."""
        ...

    def now_ns(self) -> int:
        """Returns the time in nanoseconds, comparable between the nodes of a run as far as their clocks
        agree.
        """
        ...

    async def sleep(self, seconds: float) -> None: ...

    async def work(self, function: Callable[[], T], modelled: float) -> T:
        """Calls a function that would block the loop, and returns its result.

        In real time it runs in a thread, however long it takes, even if the caller is cancelled. In virtual
        time it runs at once, and then ``modelled`` seconds pass, whether it succeeds or raises.
        """
        ...

    async def listen(self, port: int, on_stream: OnStream) -> Listener:
        """Calls ``on_stream`` in a task of its own for each stream, and closes the stream when it returns.

        A PortError from a handler means that its stream is lost: the handler ends, and this is no failure of
        the program. Any other exception goes to the loop's exception handler. In both cases the stream is
        aborted.
        """
        ...

    async def connect(self, to: Address, timeout: float) -> Stream:
        """Connects to a peer. Raises Unreachable or, after ``timeout`` seconds, TimedOut."""
        ...

    async def datagrams(self, port: int, on_datagram: OnDatagram) -> DatagramSocket: ...
