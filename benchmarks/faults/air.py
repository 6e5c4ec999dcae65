"""A medium whose links can be cut, restored, slowed and made more expensive one by one; and the routes over
it.

Agents learn about links with a delay of ``lag``, as from a routing daemon; packets follow the current links.
"""

from collections.abc import Iterable
from itertools import combinations

from node_agent.linkstate.shortest_path import distances
from node_agent.model.cost_graph import CostGraph
from node_agent.ports.virtual.interface import Frame, OnFrame
from node_agent.ports.virtual.loop import VirtualLoop

NS = 1_000_000_000
LONGEST_QUEUE_NS = 2 * NS

Edge = tuple[str, str]


def edge(a: str, b: str) -> Edge:
    return (a, b) if a < b else (b, a)


class FaultyAir:
    """Implements ``Interface`` for all hosts, and ``LinkState`` for all agents. Every pair has a link."""

    def __init__(self, nodes: Iterable[str], loop: VirtualLoop, lag: float, latency: float, bps: int) -> None:
        self.nodes = tuple(nodes)
        self.edges = tuple(edge(a, b) for a, b in combinations(self.nodes, 2))
        self._loop = loop
        self._lag = lag
        self._latency_ns = round(latency * NS)
        self._usual_bps = bps
        self._stations: dict[str, tuple[OnFrame, OnFrame]] = {}
        self._cuts: dict[Edge, int] = dict.fromkeys(self.edges, 0)
        self._bps = dict.fromkeys(self.edges, bps)
        self._costs = dict.fromkeys(self.edges, 1.0)
        self._down: dict[str, None] = {}
        self._busy_until: dict[Edge, int] = {}
        self._next_hops: dict[Edge, str | None] = {}
        self._told = self._truth()

    def attach(self, node: str, received: OnFrame, failed: OnFrame) -> None:
        self._stations[node] = (received, failed)

    def send(self, frame: Frame) -> None:
        way, now = (frame.source, frame.destination), self._loop.now_ns()
        start = max(now, self._busy_until.get(way, 0))
        if start - now > LONGEST_QUEUE_NS:
            return
        end = start + frame.size * 8 * NS // self._bps[edge(*way)]
        self._busy_until[way] = end
        self._loop.call_at_ns(end + self._latency_ns, self._arrive, frame)

    async def cost_graph(self) -> CostGraph:
        return self._told

    def next_hop(self, node: str, destination: str, /) -> str | None:
        key = (node, destination)
        if key not in self._next_hops:
            graph = self._truth()
            onward = ((distances(graph, hop).get(destination), hop) for hop in graph.costs.get(node, ()))
            usable = [(cost, hop) for cost, hop in onward if cost is not None]
            self._next_hops[key] = min(usable)[1] if usable else None
        return self._next_hops[key]

    # Faults. Cuts of a link may overlap: it works again when all have ended.

    def cut(self, *edges: Edge) -> None:
        for each in edges:
            self._cuts[each] += 1
        self._changed()

    def mend(self, *edges: Edge) -> None:
        for each in edges:
            self._cuts[each] -= 1
        self._changed()

    def slow(self, which: Edge, bps: int | None = None) -> None:
        """Slows a link. None: normal speed again."""
        self._bps[which] = bps or self._usual_bps

    def price(self, which: Edge, cost: float) -> None:
        self._costs[which] = cost
        self._changed()

    def down(self, node: str) -> None:
        self._down[node] = None
        self._changed()

    def up(self, node: str) -> None:
        del self._down[node]
        self._changed()

    def _whole(self, which: Edge) -> bool:
        return not self._cuts[which] and not any(node in self._down for node in which)

    def _arrive(self, frame: Frame) -> None:
        if self._whole(edge(frame.source, frame.destination)):
            self._stations[frame.destination][0](frame)
        else:
            self._stations[frame.source][1](frame)

    def _truth(self) -> CostGraph:
        costs: dict[str, dict[str, float]] = {node: {} for node in self.nodes if node not in self._down}
        for (a, b), cost in self._costs.items():
            if self._whole((a, b)):
                costs[a][b] = costs[b][a] = cost
        return CostGraph(costs, "cost", "campaign", self._loop.now_ns())

    def _changed(self) -> None:
        self._next_hops.clear()
        self._loop.call_later(self._lag, self._tell)

    def _tell(self) -> None:
        self._told = self._truth()
