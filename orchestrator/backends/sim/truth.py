"""Routes and costs for the agents of a simulation, straight from the true links."""

from collections.abc import Callable

from node_agent.model.cost_graph import CostGraph
from orchestrator.radio.truth import Links, counted_in_hops, next_hops_towards, true_costs
from orchestrator.spec.routing import TrueMetric


class GroundTruth:
    """Implements the agents' LinkState and the virtual hosts' next hop on the true links of this moment."""

    def __init__(self, now_ns: Callable[[], int], metric: TrueMetric) -> None:
        self._now_ns = now_ns
        self._metric: TrueMetric = metric
        self._links: Links = {}
        self._next_hops: dict[str, dict[str, str]] = {}
        self._graph: CostGraph | None = None

    def update(self, links: Links) -> None:
        """The links cost what the medium says, in transmissions."""
        if self._metric == "hops":
            links = counted_in_hops(links)
        if links != self._links:
            self._links = links
            self._next_hops.clear()
            self._graph = None

    async def cost_graph(self) -> CostGraph:
        if self._graph is None:
            self._graph = true_costs(self._links, self._now_ns(), self._metric)
        return self._graph

    def next_hop(self, node: str, destination: str) -> str | None:
        if destination not in self._next_hops:
            self._next_hops[destination] = next_hops_towards(destination, self._links)
        return self._next_hops[destination].get(node)
