"""A node's port as a foreign reader gets it: what it does in callbacks cannot end the agent either."""

import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

from node_agent.extensions.failures import Failures
from node_agent.extensions.guard import Failed, Foreign, Guard, guarded, guarded_await
from node_agent.ports import Address, DatagramSocket, Listener, OnDatagram, OnStream, Port, PortError, Stream

T = TypeVar("T")


class GuardedPort:
    """``port`` with guarded callbacks. If they fail too often in a row, they are not called any more."""

    def __init__(self, port: Port, foreign: Foreign, failures: Failures) -> None:
        self._port = port
        self._foreign = foreign
        self._guard = Guard(foreign, failures)

    @property
    def clock_name(self) -> str:
        return self._port.clock_name

    @property
    def host(self) -> str:
        return self._port.host

    @property
    def random(self) -> random.Random:
        return self._port.random

    def fresh_bytes(self, count: int) -> bytes:
        return self._port.fresh_bytes(count)

    def now_ns(self) -> int:
        return self._port.now_ns()

    async def sleep(self, seconds: float) -> None:
        await self._port.sleep(seconds)

    async def work(self, function: Callable[[], T], modelled: float) -> T:
        return await self._port.work(function, modelled)

    async def listen(self, port: int, on_stream: OnStream) -> Listener:
        return await self._port.listen(port, lambda stream: self._handle(on_stream, stream))

    async def connect(self, to: Address, timeout: float) -> Stream:
        return await self._port.connect(to, timeout)

    async def datagrams(self, port: int, on_datagram: OnDatagram) -> DatagramSocket:
        def receive(data: bytes, source: Address) -> None:
            self._guard.call(lambda: on_datagram(data, source), lambda: None)

        return await self._port.datagrams(port, receive)

    async def _handle(self, on_stream: OnStream, stream: Stream) -> None:
        if self._guard.left_out:
            return
        try:
            handling: Awaitable[None] = guarded(self._foreign, lambda: on_stream(stream))
            await guarded_await(self._foreign, handling)
        except Failed as failed:
            if isinstance(failed.__cause__, PortError):  # its stream is lost: no failure of the reader
                raise failed.__cause__ from None
            self._guard.failed(failed)
            stream.abort()
            return
        self._guard.succeeded()
