"""Routes: computed from everything the sets know, and only when one of them has changed."""

from collections.abc import Mapping
from typing import NamedTuple

from node_agent.olsr import paths, topology, wire
from node_agent.olsr.announced import Announced
from node_agent.olsr.neighbourhood import Neighbour, Neighbourhood
from node_agent.olsr.paths import Path, Paths, Way
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
        self.changes = 0  # grows whenever a way differs; costs do not count
        self.paths = Paths({}, {})  # by main address
        self._own = own
        self._neighbourhood = neighbourhood
        self._topology = topology
        self._aliases = aliases
        self._networks = networks
        self._seen: tuple[int, ...] = ()
        self._host_ways: dict[int, Way] = {}
        self._net_ways: dict[tuple[int, int], Way] = {}
        self._mains: dict[int, int] = {}
        self._mains_seen: tuple[int, int] | None = None

    @property
    def alias_changes(self) -> int:
        return self._aliases.changes

    def host_ways(self) -> Mapping[int, Way]:
        self._refresh()
        return self._host_ways

    def net_ways(self) -> Mapping[tuple[int, int], Way]:
        self._refresh()
        return self._net_ways

    def hosts(self) -> dict[int, Route]:
        return {
            address: Route(way.gateway, way.interface, way.hops, self._cost(address, way) / SCALE)
            for address, way in self.host_ways().items()
        }

    def nets(self) -> dict[tuple[int, int], Route]:
        self._refresh()
        return {
            network: Route(path.gateway, path.interface, path.hops, path.cost / SCALE)
            for network, path in self._net_paths().items()
        }

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
        reached = self.paths.ways
        return any(before[target] < _GOOD for target in before.keys() - after.keys()) or any(
            target not in reached and target not in self._own for target in after.keys() - before.keys()
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
        self.paths = paths.cheapest(self._own, self._first_hops(), self._edges(unheard))
        host_ways = self._find_host_ways()
        net_ways = {network: Way(*path[1:]) for network, path in self._net_paths().items()}
        if host_ways != self._host_ways or net_ways != self._net_ways:
            self._host_ways, self._net_ways = host_ways, net_ways
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
            edges[neighbour.address] = topology.usable(
                {mains.get(address, address): cost for address, (cost, _) in neighbour.two_hop.items()}
            )
        return edges

    def _find_host_ways(self) -> dict[int, Way]:
        ways = {address: paths.unpack(way) for address, way in self.paths.ways.items()}
        for alias, main in self.mains().items():
            if main in ways and alias not in ways and alias not in self._own and wire.is_host(alias):
                ways[alias] = ways[main]
        # A neighbour's own interfaces are reached over the links to them, where there are any that work.
        for link in self._neighbourhood.each_link():
            if link.cost < BROKEN and link.remote in ways and ways[link.remote].hops == 1:
                ways[link.remote] = Way(1, link.remote, link.interface)
        return ways

    def _cost(self, host: int, way: Way) -> int:
        if way.gateway == host:
            return self._neighbourhood.links[way.interface][host].cost
        return self.paths.costs[host if host in self.paths.ways else self.mains()[host]]

    def _net_paths(self) -> dict[tuple[int, int], Path]:
        best: dict[tuple[int, int], Path] = {}
        for gateway, networks in self._networks.each():
            path = self.paths.get(gateway)
            if path is None:
                continue
            for network in networks:
                if network not in best or path < best[network]:
                    best[network] = path
        return best
