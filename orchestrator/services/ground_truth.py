"""No protocol at all: routes and costs are those of the true links, at once and without a message."""

from collections.abc import Callable, Sequence
from typing import Literal

from node_agent.model.cost_graph import CostGraph
from node_agent.ports.virtual.host import NextHop, VirtualHost
from node_agent.ports.virtual.port import VirtualPort
from orchestrator.radio.truth import Links, counted_in_hops, next_hops_towards, true_costs
from orchestrator.services.base import RoutingService, TrueMetric, TrueRoutes
from orchestrator.services.virtual import Joined, VirtualNetwork
from orchestrator.spec.routing import RoutingSection


class GroundTruth(RoutingSection):
    """No protocol at all: routes and costs are those of the true links, at once and without a message."""

    protocol: Literal["ground_truth"]
    metric: TrueMetric = "etx"


class GroundTruthService(RoutingService):
    """The testbed itself sets routes and gives costs, where it knows the true links."""

    protocol = "ground_truth"
    section = GroundTruth
    has_daemon = False

    def __init__(self, routing: GroundTruth) -> None:
        self._routing = routing

    def true_routes(self) -> TrueRoutes:
        return TrueRoutes(self._routing.metric)

    def in_virtual_time(self, network: VirtualNetwork) -> "TrueRouting":
        return TrueRouting(self._routing.metric, network)

    def once_up(self) -> str:
        return ""


class TrueLinks:
    """Implements the agents' LinkState and the virtual hosts' next hop on the true links of this moment."""

    def __init__(self, now_ns: Callable[[], int], metric: TrueMetric, relays: bool = True) -> None:
        self._now_ns = now_ns
        self._routes = TrueRoutes(metric, relays)
        self._links: Links = {}
        self._next_hops: dict[str, dict[str, str]] = {}
        self._graph: CostGraph | None = None

    def update(self, links: Links) -> None:
        """The links cost what the medium says, in transmissions."""
        if self._routes.metric == "hops":
            links = counted_in_hops(links)
        if links != self._links:
            self._links = links
            self._next_hops.clear()
            self._graph = None

    async def cost_graph(self) -> CostGraph:
        if self._graph is None:
            self._graph = true_costs(self._links, self._now_ns(), *self._routes)
        return self._graph

    def has_link(self, node: str, destination: str) -> bool:
        return destination in self._links.get(node, {})

    def next_hop(self, node: str, destination: str) -> str | None:
        if destination not in self._next_hops:
            self._next_hops[destination] = next_hops_towards(destination, self._links)
        return self._next_hops[destination].get(node)


class TrueRouting:
    def __init__(self, metric: TrueMetric, network: VirtualNetwork) -> None:
        self._truth = TrueLinks(network.now_ns, metric)
        self._node_at = network.node_at

    def next_hop(self, node: str) -> NextHop:
        def towards(destination: str, /) -> str | None:
            there = self._node_at.get(destination)
            return None if there is None else self._truth.next_hop(node, there)

        return towards

    def join(self, host: VirtualHost, port: VirtualPort, wanted: Sequence[str]) -> Joined:
        return Joined(self._truth)

    def update(self, links: Links) -> None:
        self._truth.update(links)
