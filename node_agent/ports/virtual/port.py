"""Implements ``node_agent.ports`` for an agent on a modelled network, in virtual time."""

import asyncio
import random
from collections.abc import Callable, Coroutine
from functools import lru_cache
from typing import Any, TypeVar

from node_agent.ports import (
    Address,
    DatagramSocket,
    Listener,
    OnDatagram,
    OnStream,
    Stream,
    TimedOut,
    Unreachable,
)
from node_agent.ports.handlers import Handlers
from node_agent.ports.virtual.endpoint import VirtualStream
from node_agent.ports.virtual.host import BROADCAST_HOST, Datagram, VirtualHost
from node_agent.ports.virtual.segment import Segment
from node_agent.ports.virtual.stream import StreamMachine

T = TypeVar("T")

MAX_DATAGRAM = 65507


class VirtualPort:
    """To be used by tasks of the loop that is the host's clock."""

    def __init__(self, host: VirtualHost, seed: int) -> None:
        self._host = host
        self.now_ns = host.clock.now_ns
        self._random = random.Random(f"{seed}/{host.node}")
        self._fresh = random.Random(f"{seed}/{host.node}/fresh")

    @property
    def clock_name(self) -> str:
        return "virtual"

    @property
    def host(self) -> str:
        return self._host.address

    @property
    def random(self) -> random.Random:
        return self._random

    def fresh_bytes(self, count: int) -> bytes:
        return self._fresh.randbytes(count)

    def sleep(self, seconds: float) -> Coroutine[Any, Any, None]:
        return asyncio.sleep(seconds)

    async def work(self, function: Callable[[], T], modelled: float) -> T:
        try:
            return function()
        finally:
            await asyncio.sleep(modelled)

    async def listen(self, port: int, on_stream: OnStream) -> Listener:
        return VirtualListener(self._host, port or self._host.free_port(), on_stream)

    async def connect(self, to: Address, timeout: float) -> Stream:
        host = self._host
        if to.host == BROADCAST_HOST or not 0 < to.port < 65536:
            raise Unreachable(f"{to.host}:{to.port} is no address of a stream")
        if not host.reaches(to.host):
            raise Unreachable(f"no route from {host.address} to {to.host}")
        local = host.free_port()
        machine = StreamMachine.connect(host.stream_config, local, to.port, host.clock.now_ns())
        stream = VirtualStream(host, (local, to.host, to.port), machine)
        try:
            async with asyncio.timeout(timeout):
                await stream.opened()
        except TimeoutError:
            stream.abort()
            raise TimedOut(f"{to.host}:{to.port} did not answer within {timeout:g} s") from None
        except BaseException:
            stream.abort()
            raise
        return stream

    async def datagrams(self, port: int, on_datagram: OnDatagram) -> DatagramSocket:
        return VirtualDatagramSocket(self._host, port or self._host.free_port(), on_datagram)


class VirtualListener:
    def __init__(self, host: VirtualHost, port: int, on_stream: OnStream) -> None:
        self._host = host
        self._port = port
        self._handlers = Handlers(on_stream)
        self._closed = False
        host.bind_listener(port, self)

    @property
    def address(self) -> Address:
        return Address(self._host.address, self._port)

    def on_syn(self, syn: Segment, source: str) -> None:
        host = self._host
        machine = StreamMachine.accept(host.stream_config, syn, host.clock.now_ns())
        stream = VirtualStream(host, (self._port, source, syn.source_port), machine)
        stream.when_open(lambda: self._handlers.start(stream))

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._host.release_listener(self._port)
            self._handlers.close()


class VirtualDatagramSocket:
    def __init__(self, host: VirtualHost, port: int, on_datagram: OnDatagram) -> None:
        self._host = host
        self._port = port
        self._on_datagram = on_datagram
        self._closed = False
        host.bind_socket(port, self._on_packet)

    @property
    def address(self) -> Address:
        return Address(self._host.address, self._port)

    def send(self, data: bytes, to: Address) -> None:
        if not self._closed and len(data) <= MAX_DATAGRAM:
            self._host.send(to.host, Datagram(self._port, to.port, data))

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._host.release_socket(self._port)

    def _on_packet(self, datagram: Datagram, source: str) -> None:
        self._on_datagram(datagram.data, _address(source, datagram.source_port))


# Cached: there are few addresses, and one comes with every packet.
_address = lru_cache(maxsize=4096)(Address)
