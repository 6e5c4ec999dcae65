"""Routes: computed from everything the sets know, and only when one of them has changed."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from node_agent.olsr import paths, wire
from node_agent.olsr.announced import Announced
from node_agent.olsr.neighbourhood import Neighbour, Neighbourhood
from node_agent.olsr.paths import Path
from node_agent.olsr.quality import BROKEN, SCALE
from node_agent.olsr.topology import Topology

_GOOD = 4 * SCALE


class Route(NamedTuple):
    gateway: int  # of a direct neighbour: the destination itself, or the address of the link that is best
    interface: int
    hops: int
    cost: float  # in the metric


class Routing:
    def __init__(
        self,
        own: tuple[int, ...],
        neighbourhood: Neighbourhood,
        topology: Topology,
        aliases: Announced[int],
        networks: Announced[tuple[int, int]],
    ) -> None:
        self.changes = 0  # grows whenever the routes differ
        self.paths: dict[int, Path] = {}  # by main address
        self._own = own
        self._neighbourhood = neighbourhood
        self._topology = topology
        self._aliases = aliases
        self._networks = networks
        self._seen: tuple[int, ...] = ()
        self._hosts: Mapping[int, Route] = MappingProxyType({})
        self._nets: Mapping[tuple[int, int], Route] = MappingProxyType({})
        self._mains: dict[int, int] = {}
        self._mains_seen: tuple[int, int] | None = None

    @property
    def alias_changes(self) -> int:
        return self._aliases.changes

    def hosts(self) -> Mapping[int, Route]:
        self._refresh()
        return self._hosts

    def nets(self) -> Mapping[tuple[int, int], Route]:
        self._refresh()
        return self._nets

    def mains(self) -> Mapping[int, int]:
        """Main addresses by alias, from MID messages and from who says HELLO on which address."""
        seen = (self._aliases.changes, self._neighbourhood.link_changes)
        if seen != self._mains_seen:
            self._mains_seen = seen
            self._mains = {}
            for main, aliases in self._aliases.each():
                for alias in aliases:
                    self._mains.setdefault(alias, main)
            for link in self._neighbourhood.each_link():
                if link.remote != link.neighbour.address:
                    self._mains[link.remote] = link.neighbour.address
        return self._mains

    def is_news(self, before: Mapping[int, int], after: Mapping[int, int]) -> bool:
        """Whether edges have come or gone that others should not wait to hear of.

        One that leads where no route did, or one that was good until it vanished: bad ones come and go.
        """
        return any(cost < _GOOD for target, cost in before.items() if target not in after) or any(
            target not in self.paths and target not in self._own for target in after if target not in before
        )

    def _unheard(self) -> list[Neighbour]:
        """Neighbours whose TC is still unknown: what they list in their HELLOs stands in."""
        origins = self._topology.origins
        return [each for each, _ in self._neighbourhood.symmetric() if each.address not in origins]

    def _inputs(self, unheard: list[Neighbour]) -> tuple[int, ...]:
        return (
            self._neighbourhood.link_changes,
            self._topology.changes,
            self._aliases.changes,
            self._networks.changes,
            self._neighbourhood.two_hop_changes if unheard else -1,
        )

    def _refresh(self) -> None:
        unheard = self._unheard()
        seen = self._inputs(unheard)
        if seen == self._seen:
            return
        self._seen = seen
        self.paths = paths.cheapest(self._own[0], self._first_hops(), self._edges(unheard))
        hosts = self._host_routes()
        nets = self._net_routes()
        if hosts != self._hosts or nets != self._nets:
            self._hosts, self._nets = MappingProxyType(hosts), MappingProxyType(nets)
            self.changes += 1

    def _first_hops(self) -> list[tuple[int, Path]]:
        return [
            (neighbour.address, Path(link.cost, 1, link.remote, link.interface))
            for neighbour, link in self._neighbourhood.symmetric()
            if link.cost < BROKEN
        ]

    def _edges(self, unheard: list[Neighbour]) -> dict[int, Mapping[int, int]]:
        edges: dict[int, Mapping[int, int]] = {
            address: origin.costs for address, origin in self._topology.origins.items()
        }
        mains = self.mains()
        for neighbour in unheard:
            edges[neighbour.address] = {
                mains.get(address, address): cost
                for address, (cost, _) in neighbour.two_hop.items()
                if cost < BROKEN
            }
        return edges

    def _host_routes(self) -> dict[int, Route]:
        hosts = {
            address: Route(path.gateway, path.interface, path.hops, path.cost / SCALE)
            for address, path in self.paths.items()
            if self._may_lead_to(address)
        }
        for alias, main in self.mains().items():
            if main in hosts and alias not in hosts and self._may_lead_to(alias):
                hosts[alias] = hosts[main]
        # A neighbour's own interfaces are reached over the links to them, where there are any that work.
        for link in self._neighbourhood.each_link():
            if link.cost < BROKEN and link.remote in hosts and hosts[link.remote].hops == 1:
                hosts[link.remote] = Route(link.remote, link.interface, 1, link.cost / SCALE)
        return hosts

    def _may_lead_to(self, address: int) -> bool:
        """Others can claim to be next to anything: to this node itself, or to everybody."""
        return wire.is_host(address) and address not in self._own

    def _net_routes(self) -> dict[tuple[int, int], Route]:
        best: dict[tuple[int, int], Path] = {}
        for gateway, networks in self._networks.each():
            path = self.paths.get(gateway)
            if path is None:
                continue
            for network in networks:
                if network not in best or path < best[network]:
                    best[network] = path
        return {
            network: Route(path.gateway, path.interface, path.hops, path.cost / SCALE)
            for network, path in best.items()
        }
