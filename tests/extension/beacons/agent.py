"""The half of the beacons that runs in agents."""

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from node_agent.apps.base import AppKind, AppStatus, Surroundings
from node_agent.linkstate.overhead import OverheadSource
from node_agent.model.telemetry import Event
from node_agent.ports import Address, DatagramSocket
from node_agent.telemetry.belief import AppScopes
from node_agent.telemetry.kinds import COUNTER, RecordKinds
from node_agent.telemetry.metrics import Metric, MetricKind, MetricKinds, Sample

ROVE_API = 1


class BeaconHeard(Event, tag="beacon_heard", frozen=True):
    """``node_name`` has heard ``count`` beacons of others."""

    node_name: str
    count: int


class BeaconsConfig(Struct, frozen=True):
    nodes: tuple[str, ...]
    every_s: float


class Beacons:
    """Sends a datagram to every other node once a period."""

    def __init__(self, config: BeaconsConfig, around: Surroundings) -> None:
        self._config = config
        self._around = around
        self._socket: DatagramSocket | None = None
        self._task: asyncio.Task[None] | None = None
        self._count = 0

    async def start(self) -> None:
        port = self._around.addresses[self._around.node].port
        self._socket = await self._around.port.datagrams(port, self._receive)

    def open(self) -> None:
        self._task = self._task or asyncio.create_task(self._send())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
        if self._socket is not None:
            self._socket.close()

    def sample(self) -> None:
        self._around.record(BeaconHeard(self._around.node, self._count))

    def status(self) -> AppStatus:
        return AppStatus(ready=True)

    def overheads(self) -> Sequence[OverheadSource]:
        return ()

    def _receive(self, data: bytes, source: Address) -> None:
        self._count += data == b"beacon"

    async def _send(self) -> None:
        assert self._socket is not None
        while True:
            for node in self._config.nodes:
                if node != self._around.node:
                    self._socket.send(b"beacon", self._around.addresses[node])
            await self._around.port.sleep(self._config.every_s)


class Scope(Struct, frozen=True):
    """Nothing but its name."""


RECORDS = RecordKinds(
    events=(BeaconHeard,),
    bounds={"count": COUNTER},
    subject="node_name",
    words={"node_name": "speak for another node"},
)


def scopes_of(nodes: Sequence[str]) -> AppScopes:
    return AppScopes("beacons", {node: {node: Scope()} for node in nodes})


class BeaconTally:
    """The last record of a node has all that it heard."""

    def __init__(self) -> None:
        self._count = 0

    def take(self, kind: str, record: Any, t_ns: int) -> None:
        if kind == "beacon_heard":
            self._count = record.count

    def samples(self) -> Iterator[Sample]:
        yield Sample("rove_beacons_heard_total", (), self._count)


METRICS = MetricKinds(
    (Metric("rove_beacons_heard_total", MetricKind.COUNTER, "Beacons of other nodes that were heard."),),
    BeaconTally,
    ticks=("beacon_heard",),
)
BEACONS = AppKind(BeaconsConfig, Beacons, nodes=lambda config: config.nodes, records=RECORDS, metrics=METRICS)
