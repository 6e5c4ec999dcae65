"""A port in memory: the attacker provides what an agent listens on, connects to and receives."""

import asyncio
import random
import time
from collections.abc import Callable
from typing import TypeVar

from node_agent.ports import (
    Address,
    Buffer,
    ConnectionLost,
    EndOfStream,
    Listener,
    OnDatagram,
    OnStream,
    Stream,
    Unreachable,
)

T = TypeVar("T")


class MemoryStream:
    """One end of a connection; ``other`` is the other end. Data put into one is at the other at once."""

    def __init__(self, peer: Address) -> None:
        self.peer = peer
        self.other: MemoryStream
        self.received = 0
        self.unsent = 0
        self.over = ""
        self._arrived = bytearray()
        self._changed = asyncio.Event()

    @classmethod
    def pair(cls, one: Address, other: Address) -> "tuple[MemoryStream, MemoryStream]":
        """Returns the ends at ``one`` and at ``other``."""
        ends = cls(other), cls(one)
        ends[0].other, ends[1].other = ends[1], ends[0]
        return ends

    async def read_exactly(self, count: int) -> bytes:
        while len(self._arrived) < count:
            if self.over:
                raise EndOfStream("closed") if self.over == "closed" else ConnectionLost(self.over)
            self._changed.clear()
            await self._changed.wait()
        data = bytes(self._arrived[:count])
        del self._arrived[:count]
        return data

    def put(self, *data: Buffer) -> None:
        if self.over:
            raise ConnectionLost(self.over)
        for each in data:
            self.other.arrive(bytes(each))

    def arrive(self, data: bytes) -> None:
        self._arrived += data
        self.received += len(data)
        self._changed.set()

    async def drained(self) -> None:
        if self.over:
            raise ConnectionLost(self.over)

    async def write(self, data: Buffer) -> None:
        self.put(data)

    def read_ahead(self) -> None:
        pass

    def close(self) -> None:
        self._end("closed")

    def abort(self) -> None:
        self._end("aborted")

    def _end(self, how: str) -> None:
        for end in (self, self.other):
            end.over = end.over or how
            end._changed.set()


class MemoryListener:
    def __init__(self, address: Address) -> None:
        self.address = address

    def close(self) -> None:
        pass


class MemorySocket:
    def __init__(self, address: Address) -> None:
        self.address = address
        self.sent = 0

    def send(self, data: bytes, to: Address) -> None:
        self.sent += 1

    def close(self) -> None:
        pass


class MemoryPort:
    """Implements ``node_agent.ports.Port``. ``answer``: plays the peer that the agent connects to."""

    clock_name = "real"

    def __init__(self, host: str, answer: Callable[[Address, MemoryStream], None] | None = None) -> None:
        self.host = host
        self.random = random.Random(1)
        self.accept: OnStream | None = None
        self.hear: OnDatagram | None = None
        self._answer = answer
        self._fresh = 0

    def fresh_bytes(self, count: int) -> bytes:
        self._fresh += 1
        return self._fresh.to_bytes(count, "big")

    def now_ns(self) -> int:
        return time.time_ns()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def work(self, function: Callable[[], T], modelled: float) -> T:
        return function()

    async def listen(self, port: int, on_stream: OnStream) -> Listener:
        self.accept = on_stream
        return MemoryListener(Address(self.host, port or 1))

    async def connect(self, to: Address, timeout: float) -> Stream:
        if self._answer is None:
            raise Unreachable("nobody is there")
        here, there = MemoryStream.pair(Address(self.host, 1), to)
        self._answer(to, there)
        return here

    async def datagrams(self, port: int, on_datagram: OnDatagram) -> MemorySocket:
        self.hear = on_datagram
        return MemorySocket(Address(self.host, port))
