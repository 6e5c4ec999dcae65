"""Networks for tests of links and agents: the modelled radio in virtual time, and this machine's loopback."""

import asyncio
import socket
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from functools import partial
from typing import Protocol

from node_agent.linkstate.base import LinkStateUnavailable
from node_agent.linkstate.shortest_path import distances
from node_agent.model.cost_graph import CostGraph
from node_agent.ports import Address, Port
from node_agent.ports.os_port import OsPort
from node_agent.ports.virtual.host import VirtualHost
from node_agent.ports.virtual.loop import VirtualLoop
from node_agent.ports.virtual.port import VirtualPort
from orchestrator.radio.disc import DiscRadio

RANGE_M = 500.0
DATA_PORT = 7400


class Network(Protocol):
    """Also the link state of every agent on it; ``blind`` takes that away."""

    blind: bool

    def port(self, node: str) -> Port: ...

    def address(self, node: str) -> Address: ...

    async def cost_graph(self) -> CostGraph: ...


class RadioNetwork:
    """Nodes on a disc radio, all within range of each other until ``move`` says otherwise."""

    def __init__(self, nodes: Sequence[str], seed: int = 1) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        self.blind = False
        self._loop = loop
        self._radio = DiscRadio(loop, RANGE_M, bandwidth_bps=11_000_000, latency_ns=100_000)
        self._positions = {node: (float(i), 0.0) for i, node in enumerate(nodes)}
        self._ports: dict[str, Port] = {}
        self._next_hops: dict[tuple[str, str], str | None] = {}
        for node in nodes:
            host = VirtualHost(node, node, loop, self._radio, partial(self._next_hop, node))
            self._ports[node] = VirtualPort(host, seed)
        self._radio.move(self._positions)

    def port(self, node: str) -> Port:
        return self._ports[node]

    def address(self, node: str) -> Address:
        return Address(node, DATA_PORT)

    def move(self, **positions: float) -> None:
        """Put nodes on a line, at so many metres from its start."""
        self._positions |= {node: (x, 0.0) for node, x in positions.items()}
        self._next_hops.clear()
        self._radio.move(self._positions)

    def graph(self) -> CostGraph:
        return CostGraph(self._radio.links(), "hops", "ground_truth", self._loop.now_ns())

    async def cost_graph(self) -> CostGraph:
        if self.blind:
            raise LinkStateUnavailable("the routing daemon is silent")
        return self.graph()

    def _next_hop(self, node: str, destination: str, /) -> str | None:
        """Routes on the true links of the moment."""
        key = (node, destination)
        if key not in self._next_hops:
            graph = self.graph()
            onward = {hop: distances(graph, hop).get(destination) for hop in graph.costs[node]}
            usable = [(cost, hop) for hop, cost in onward.items() if cost is not None]
            self._next_hops[key] = min(usable)[1] if usable else None
        return self._next_hops[key]


class LoopbackNetwork:
    """Real sockets on this machine; everyone reaches everyone, except who is said to be ``gone``.

    ``apps``: how many applications listen on each node.
    """

    def __init__(self, nodes: Sequence[str], apps: int = 1) -> None:
        self.blind = False
        self.gone: set[str] = set()
        self._addresses = {node: Address("127.0.0.1", free_port(apps)) for node in nodes}

    def port(self, node: str) -> Port:
        return OsPort("127.0.0.1", seed=1)

    def address(self, node: str) -> Address:
        return self._addresses[node]

    async def cost_graph(self) -> CostGraph:
        here = [node for node in self._addresses if node not in self.gone]
        return CostGraph({a: {b: 1.0 for b in here if a != b} for a in here}, "hops", "test", 0)


def free_port(count: int = 1) -> int:
    """The first of ``count`` ports in a row that nobody listens on."""
    while True:
        with ExitStack() as probes:
            first: int = probes.enter_context(socket.create_server(("127.0.0.1", 0))).getsockname()[1]
            with suppress(OSError, OverflowError):
                for port in range(first + 1, first + count):
                    probes.enter_context(socket.create_server(("127.0.0.1", port)))
                return first
