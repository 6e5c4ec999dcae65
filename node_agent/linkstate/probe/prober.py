"""Runs a prober on a port: a socket, a timer, and readings of its core."""

import asyncio
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Self

from node_agent.linkstate.probe.core import Outgoing, ProbeConfig, ProbeCore
from node_agent.linkstate.probe.messages import Estimate
from node_agent.linkstate.reader import Reading
from node_agent.linkstate.source import LinkStateReader, Source
from node_agent.model.refusals import Refusals
from node_agent.ports import Address, DatagramSocket, Port


class Prober:
    """A Reader while it is entered: ``async with Prober(...) as reader``. Without targets it only answers.

    ``keys``: by address, those that this node shares with the others of the run.
    """

    def __init__(
        self,
        port: Port,
        targets: Sequence[str],
        keys: Mapping[str, bytes],
        config: ProbeConfig | None = None,
        refusals: Refusals | None = None,
    ) -> None:
        self._port = port
        self._config = config or ProbeConfig()
        session = port.random.getrandbits(32)
        self._core = ProbeCore(self._config, port.host, targets, session, 0, keys, refusals)
        self._loop: asyncio.AbstractEventLoop
        self._socket: DatagramSocket
        self._sending: asyncio.Task[None]

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        self._socket = await self._port.datagrams(self._config.port, self._received)
        self._sending = asyncio.create_task(self._send(), name="prober")
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._sending.cancel()
        await asyncio.wait([self._sending])
        self._socket.close()

    async def read(self) -> Reading:
        return self._core.reading(self._now_ns())

    def estimates(self) -> dict[str, Estimate]:
        return self._core.estimates(self._now_ns())

    async def _send(self) -> None:
        # A random delay: nodes that start together should not probe together.
        await self._port.sleep(self._port.random.random())
        while (wake_ns := self._core.next_wake_ns()) is not None:
            await self._port.sleep(max(0.0, (wake_ns - self._now_ns()) / 1e9))
            for outgoing in self._core.wake(self._now_ns()):
                self._transmit(outgoing)

    def _received(self, data: bytes, sender: Address) -> None:
        if answer := self._core.receive(data, sender.host, self._now_ns()):
            self._transmit(answer)

    def _now_ns(self) -> int:
        """Returns the loop's time: nobody sets it, and it is not compared with other nodes."""
        return round(self._loop.time() * 1e9)

    def _transmit(self, outgoing: Outgoing) -> None:
        self._socket.send(outgoing.data, Address(outgoing.to, self._config.port))


def _open(source: Source) -> Prober:
    keys = source.keys or {}
    by_address = {address: keys[node] for address, node in source.names.items() if node in keys}
    return Prober(source.node, source.downstream.direct, by_address, source.probe, source.refusals)


READER = LinkStateReader("probes of our own to downstream nodes", ("etx", "latency", "log_delivery"), _open)
