"""No routing: nothing runs on the nodes, nobody relays, and a node reaches its direct neighbours only."""

from collections.abc import Sequence
from typing import Literal

from node_agent.ports.virtual.host import NextHop, VirtualHost
from node_agent.ports.virtual.port import VirtualPort
from orchestrator.radio.truth import Links
from orchestrator.services.base import RoutingService, TrueMetric, TrueRoutes
from orchestrator.services.ground_truth import TrueLinks
from orchestrator.services.virtual import Joined, VirtualNetwork
from orchestrator.spec.routing import RoutingSection


class NoRouting(RoutingSection):
    """No routing: a node reaches its direct neighbours only; costs are those of the true links."""

    protocol: Literal["none"]
    metric: TrueMetric = "etx"


class NoRoutingService(RoutingService):
    """The testbed itself tells the nodes their links, where it knows them."""

    protocol = "none"
    section = NoRouting
    has_daemon = False

    def __init__(self, routing: NoRouting) -> None:
        self._routing = routing

    def true_routes(self) -> TrueRoutes:
        return TrueRoutes(self._routing.metric, relays=False)

    def in_virtual_time(self, network: VirtualNetwork) -> "DirectLinks":
        return DirectLinks(self._routing.metric, network)

    def once_up(self) -> str:
        return "nobody relays: a node reaches its direct neighbours only"


class DirectLinks:
    def __init__(self, metric: TrueMetric, network: VirtualNetwork) -> None:
        self._truth = TrueLinks(network.now_ns, metric, relays=False)
        self._node_at = network.node_at

    def next_hop(self, node: str) -> NextHop:
        def towards(destination: str, /) -> str | None:
            there = self._node_at.get(destination)
            return there if there is not None and self._truth.has_link(node, there) else None

        return towards

    def join(self, host: VirtualHost, port: VirtualPort, wanted: Sequence[str]) -> Joined:
        return Joined(self._truth)

    def update(self, links: Links) -> None:
        self._truth.update(links)
