"""Implements ``node_agent.ports`` with the machine's clock and sockets, through asyncio."""

import asyncio
import os
import random
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

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
from node_agent.ports.os_stream import OsStream

T = TypeVar("T")

# OSError comes from the kernel and the resolver, ValueError from names that cannot be encoded.
_BAD_ADDRESS = (OSError, ValueError)


def _refuse_impossible(port: int) -> None:
    if not 0 <= port < 65536:  # uvloop would use the lowest 16 bits
        raise Unreachable(f"{port} is not a port number")


class OsPort:
    """``host``: the address that peers see; listeners, connections and datagrams are bound to it."""

    def __init__(self, host: str, seed: int | None = None) -> None:
        self._host = host
        self._random = random.Random(seed)
        # Not the loop's own executor: the loop waits for its threads at the end, even for one that hangs on a
        # lost camera.
        self._workers = ThreadPoolExecutor(thread_name_prefix="work")

    @property
    def clock_name(self) -> str:
        return "real"

    @property
    def host(self) -> str:
        return self._host

    @property
    def random(self) -> random.Random:
        return self._random

    def fresh_bytes(self, count: int) -> bytes:
        return os.urandom(count)

    def now_ns(self) -> int:
        return time.time_ns()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def work(self, function: Callable[[], T], modelled: float) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._workers, function)

    async def listen(self, port: int, on_stream: OnStream) -> Listener:
        _refuse_impossible(port)
        handlers = Handlers(on_stream)
        try:
            server = await asyncio.get_running_loop().create_server(
                lambda: OsStream(handlers.start), self._host, port
            )
        except _BAD_ADDRESS as error:
            raise Unreachable(f"cannot listen at {self._host}:{port}: {error}") from error
        return OsListener(server, handlers)

    async def connect(self, to: Address, timeout: float) -> Stream:
        _refuse_impossible(to.port)
        try:
            async with asyncio.timeout(timeout):
                _, stream = await asyncio.get_running_loop().create_connection(
                    OsStream, to.host, to.port, local_addr=(self._host, 0)
                )
        except TimeoutError as error:
            raise TimedOut(f"{to.host}:{to.port} did not answer within {timeout:g} s") from error
        except _BAD_ADDRESS as error:
            raise Unreachable(f"cannot reach {to.host}:{to.port}: {error}") from error
        return stream

    async def datagrams(self, port: int, on_datagram: OnDatagram) -> DatagramSocket:
        _refuse_impossible(port)
        try:
            _, socket = await asyncio.get_running_loop().create_datagram_endpoint(
                lambda: OsDatagramSocket(on_datagram), (self._host, port), allow_broadcast=True
            )
        except _BAD_ADDRESS as error:
            raise Unreachable(f"cannot use {self._host}:{port} for datagrams: {error}") from error
        return socket


class OsListener:
    def __init__(self, server: asyncio.Server, handlers: Handlers) -> None:
        self._server = server
        self._handlers = handlers
        host, port = server.sockets[0].getsockname()[:2]
        self._address = Address(host, port)

    @property
    def address(self) -> Address:
        return self._address

    def close(self) -> None:
        self._server.close()
        self._handlers.close()


class OsDatagramSocket(asyncio.DatagramProtocol):
    def __init__(self, on_datagram: OnDatagram) -> None:
        self._on_datagram = on_datagram
        self._transport: asyncio.DatagramTransport

    def connection_made(self, transport: asyncio.DatagramTransport) -> None:  # type: ignore[override]
        self._transport = transport

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        self._on_datagram(data, Address(addr[0], addr[1]))

    def error_received(self, exc: Exception) -> None:
        """Ignores a lost datagram: the peer has no such port, or it is too long (see ``DatagramSocket``)."""

    @property
    def address(self) -> Address:
        host, port = self._transport.get_extra_info("sockname")[:2]
        return Address(host, port)

    def send(self, data: bytes, to: Address) -> None:
        if not self._transport.is_closing():
            self._transport.sendto(data, to)

    def close(self) -> None:
        self._transport.close()
