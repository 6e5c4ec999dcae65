"""Nodes that run flows and nothing else, on any network of the tests."""

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from node_agent.apps.base import Surroundings
from node_agent.apps.flows.application import Flows
from node_agent.apps.flows.events import Amount, Heard
from node_agent.apps.flows.model import Flow, FlowsConfig, Trace
from node_agent.model.refusals import Refusals
from node_agent.model.telemetry import Event
from node_agent.transport.authentication import Credentials
from node_agent.transport.keys import keys_of
from node_agent.transport.limits import ConnectionLimits
from tests.unit.networks import Network

SECRET = b"s" * 32
E = TypeVar("E", bound=Event)


class FlowNode:
    """One node's flows, with what they recorded, refused and failed with."""

    def __init__(
        self,
        network: Network,
        node: str,
        nodes: Sequence[str],
        flows: Sequence[Flow],
        traces: dict[str, Trace] | None = None,
        boot: int = 0,
    ) -> None:
        self.records: list[Event] = []
        self.refusals = Refusals()
        self.failures: list[tuple[str, BaseException]] = []
        self.port = network.port(node)
        around = Surroundings(
            app="flows",
            run="run",
            node=node,
            boot=boot,
            port=self.port,
            record=self.records.append,
            link_state=network,
            addresses={each: network.address(each) for each in nodes},
            credentials=Credentials("run", node, keys_of(SECRET, "run", node, nodes)),
            links=ConnectionLimits(),
            refusals=self.refusals,
            directory=None,
            scratch=Path(),
            core=asyncio.Semaphore(),
            fail=lambda where, error: self.failures.append((where, error)),
        )
        own = tuple(flow for flow in flows if node in (flow.source, flow.sink))
        self.app = Flows(FlowsConfig(own, traces or {}), around)

    async def stop(self) -> None:
        """As an agent does it: what has come last is recorded, too."""
        await self.app.stop()
        self.app.sample()

    def of(self, kind: type[E]) -> list[E]:
        return [record for record in self.records if isinstance(record, kind)]

    def last(self, kind: type[E]) -> E:
        return self.of(kind)[-1]

    def refused(self) -> dict[tuple[str, str], int]:
        """By what and why, from anybody."""
        counts: dict[tuple[str, str], int] = {}
        for each in self.refusals:
            key = each.what, each.reason
            counts[key] = counts.get(key, 0) + each.count
        return counts


class FlowNodes(dict[str, FlowNode]):
    """Nodes by name, sampled together."""

    async def start(self) -> None:
        for node in self.values():
            await node.app.start()

    async def run(self, seconds: float) -> None:
        """Opens the sources, and samples every second."""
        for node in self.values():
            node.app.open()
        await self.go_on(seconds)

    async def go_on(self, seconds: float) -> None:
        port = next(iter(self.values())).port
        while seconds > 0:
            await port.sleep(min(seconds, 1.0))
            seconds -= 1.0
            for node in self.values():
                node.app.sample()

    async def stop(self) -> None:
        for node in self.values():
            await node.stop()
            assert node.failures == []


def flow_nodes(
    network: Network, nodes: Sequence[str], *flows: Flow, traces: dict[str, Trace] | None = None
) -> FlowNodes:
    return FlowNodes({node: FlowNode(network, node, nodes, flows, traces) for node in nodes})


def flow(**changes: Any) -> Flow:
    return Flow(**{"name": "f", "source": "a", "sink": "b", "protocol": "udp", "size": 500, **changes})


def seconds_of(records: Sequence[Any], field: str) -> Iterator[Any]:
    """The last of what records say of each second, in order."""
    kind = Heard if field == "heard" else Amount
    latest = {row[0]: kind.of(row) for record in records for row in getattr(record, field)}
    return (latest[second] for second in sorted(latest))
