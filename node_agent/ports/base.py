"""The world an agent lives in: a clock, timers, byte streams and datagrams.

Agents are asyncio programs that reach time and network only through a ``Port``. ``os_port`` implements it
on the machine's own sockets, ``virtual.port`` on a modelled medium in virtual time; the same agent runs
unchanged on both. Anything in asyncio that rests on the loop's clock (sleep, timeout, Queue, Event,
TaskGroup) may be used; sets of tasks (``asyncio.wait``) may not be iterated, for their order is not
reproducible.
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
    """Base of everything a port can fail with."""


class Unreachable(PortError):
    """No path to the peer, nobody listens there, or the address cannot be used."""


class TimedOut(PortError):
    """The peer did not answer within the time given."""


class ConnectionLost(PortError):
    """The stream broke before the bytes asked for had arrived or could be taken."""


class EndOfStream(ConnectionLost):
    """The peer closed the stream in order."""


class Stream(Protocol):
    """A reliable, ordered byte stream with back-pressure."""

    @property
    def peer(self) -> Address: ...

    async def read_exactly(self, count: int) -> bytes:
        """Raises EndOfStream if the peer closed, ConnectionLost if the path died first."""
        ...

    def read_ahead(self) -> None:
        """Let more arrive from now on than was asked for. Until then little does: the peer may be anybody."""
        ...

    @property
    def received(self) -> int:
        """Bytes that have arrived so far, read or not: while it grows, the peer lives."""
        ...

    @property
    def unsent(self) -> int:
        """Bytes in the send buffer."""
        ...

    def put(self, *data: Buffer) -> None:
        """Append to the send buffer whatever room it has; raises ConnectionLost. Who goes on and on with it
        should look at ``unsent``. What was put must not be changed afterwards."""
        ...

    async def drained(self) -> None:
        """Return once the send buffer has room; raises ConnectionLost."""
        ...

    async def write(self, data: Buffer) -> None:
        """Return once ``data`` is in the send buffer and the buffer has room again."""
        ...

    def close(self) -> None:
        """Close in order: what was written is still delivered if the path allows. May be repeated."""
        ...

    def abort(self) -> None:
        """Drop the stream and what it holds at once. May be repeated."""
        ...


class Listener(Protocol):
    @property
    def address(self) -> Address:
        """Where it listens: says which port was chosen if 0 was asked for."""
        ...

    def close(self) -> None:
        """Accept no more, and cancel the handlers that still run. May be repeated."""
        ...


class DatagramSocket(Protocol):
    @property
    def address(self) -> Address: ...

    def send(self, data: bytes, to: Address) -> None:
        """Best effort: silently lost where a real datagram would be."""
        ...

    def close(self) -> None: ...


OnStream = Callable[[Stream], Awaitable[None]]
OnDatagram = Callable[[bytes, Address], None]


class Port(Protocol):
    @property
    def clock_name(self) -> str:
        """ "real" or "virtual": recorded with the telemetry."""
        ...

    @property
    def host(self) -> str:
        """This node's own address."""
        ...

    @property
    def random(self) -> random.Random:
        """Seeded per node in virtual time, so that a run can be repeated."""
        ...

    def fresh_bytes(self, count: int) -> bytes:
        """Such as never were before, nor can be foreseen; seeded per node in virtual time."""
        ...

    def now_ns(self) -> int:
        """Nanoseconds, comparable between the nodes of a run as far as their clocks agree."""
        ...

    async def sleep(self, seconds: float) -> None: ...

    async def work(self, function: Callable[[], T], modelled: float) -> T:
        """Call what would keep the loop from everything else, and return what it returns.

        In real time it runs in a thread, however long that takes, and even if nobody waits for it any more;
        in virtual time it is done at once, and then ``modelled`` seconds pass, whether it succeeds or raises.
        """
        ...

    async def listen(self, port: int, on_stream: OnStream) -> Listener:
        """Call ``on_stream`` in a task of its own for each stream; the stream is closed when it returns.

        A handler that lets a PortError through has lost its stream: that ends it, and is no failure of the
        program. Its stream is aborted, as for any other exception, which goes to the loop's handler.
        """
        ...

    async def connect(self, to: Address, timeout: float) -> Stream:
        """Raises Unreachable or, after ``timeout`` seconds, TimedOut."""
        ...

    async def datagrams(self, port: int, on_datagram: OnDatagram) -> DatagramSocket: ...
