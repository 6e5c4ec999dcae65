"""Makes a link state of a reader: names nodes, converts to the metric asked for, and keeps the last good
graph.

While reads fail, it returns the last graph, whose ``taken_ns`` shows its age. After ``keep`` seconds that
graph says nothing about a mobile network, and it raises the error instead.
"""

from collections.abc import Callable, Mapping
from itertools import chain
from math import inf, log
from operator import attrgetter

from node_agent.linkstate.reader import Edge, Garbage, LinkStateError, NotOffered, Reader, Reading
from node_agent.model.cost_graph import CostGraph

METRICS: Mapping[str, Callable[[Edge], float | None]] = {
    "hops": lambda edge: edge.hops,
    "latency": lambda edge: edge.latency,
    # max(): −log(1.0) is -0.0 as a float.
    "log_delivery": lambda edge: max(0.0, -log(edge.delivery)) if edge.delivery else None,
}
"""Metrics that follow from an edge besides the source's own; all of them add up along a path."""

Costs = dict[str, dict[str, float]]


class MeasuredLinkState:
    """``names``: node by address; a node without a name is called by its address."""

    def __init__(
        self,
        reader: Reader,
        names: Mapping[str, str],
        now_ns: Callable[[], int],
        metric: str | None = None,
        keep: float = 10.0,
    ) -> None:
        self.failure: LinkStateError | None = None
        self._reader = reader
        self._names = names
        self._now_ns = now_ns
        self._metric = metric
        self._keep_ns = round(keep * 1e9)
        self._last: CostGraph | None = None

    async def cost_graph(self) -> CostGraph:
        """Returns the graph. If it is an old one, ``failure`` says why."""
        try:
            reading = await self._reader.read()
            self._last = graph_of(reading, self._names, self._metric, self._now_ns())
        except LinkStateError as error:
            self.failure = error
            if self._last is None or self._now_ns() - self._last.taken_ns > self._keep_ns:
                raise
            return self._last
        self.failure = None
        return self._last


def graph_of(reading: Reading, names: Mapping[str, str], metric: str | None, now_ns: int) -> CostGraph:
    """Returns the graph in ``metric``, or in the source's own. Raises NotOffered if the source has no such
    costs.
    """
    by_main = {main: names[alias] for alias, main in reading.aliases.items() if alias in names}

    def name(address: str) -> str:
        main = reading.aliases.get(address, address)
        return names.get(main) or by_main.get(main, main)

    metric = metric or reading.metric
    cost_of = attrgetter("cost") if metric == reading.metric else METRICS.get(metric)
    if cost_of is None:
        raise NotOffered(f"{reading.source} reports {reading.metric}, not {metric}")
    # Each name is looked up once: there are far more edges than nodes.
    named = {address: name(address) for address in {*chain(reading.edges, *reading.edges.values())}}
    costs: Costs = {}
    for sender, row in reading.edges.items():
        announced = costs.setdefault(named[sender], {})
        for address, edge in row.items():
            receiver = named[address]
            if receiver not in costs:
                costs[receiver] = {}
            cost = cost_of(edge)
            if cost is not None:
                if not 0 <= cost < inf:  # also false for NaN
                    raise Garbage(f"{reading.source} reports the impossible cost {cost}")
                announced[receiver] = float(cost)
    if any(reading.edges.values()) and not any(costs.values()):
        raise NotOffered(f"{reading.source} does not report {metric}")
    return CostGraph(_mirrored(costs) if reading.own_only else costs, metric, reading.source, now_ns)


def _mirrored(costs: Costs) -> Costs:
    """Assumes the same cost both ways, if only this node's own costs are known.

    Then what lies behind a replica is estimated by the way through this node, and the nearest replica is
    chosen.
    """
    both = {node: dict(row) for node, row in costs.items()}
    for sender, row in costs.items():
        for receiver, cost in row.items():
            both[receiver].setdefault(sender, cost)
    return both
