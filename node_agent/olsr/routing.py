"""Computes routes from the daemon's sets, only when they are read.

In virtual time few are read: only hosts that send something need them.
"""

from collections.abc import Mapping
from functools import cached_property
from typing import NamedTuple

from node_agent.manet.membership import Manet
from node_agent.olsr import topology
from node_agent.olsr.accepted_networks import AcceptedNetworks
from node_agent.olsr.announced import Announced
from node_agent.olsr.neighbourhood import Link, Neighbour, Neighbourhood
from node_agent.olsr.paths import FirstHop, Forwarding, Path, Paths
from node_agent.olsr.quality import BROKEN, SCALE
from node_agent.olsr.reach import Reach
from node_agent.olsr.topology import Topology

_GOOD = 4 * SCALE

Network = tuple[int, int]  # address, netmask


class Route(NamedTuple):
    gateway: int  # for a direct neighbour: the destination itself, or the address of the best link
    interface: int
    hops: int
    cost: float  # in the metric


class UsableLink(NamedTuple):
    remote: int
    interface: int
    cost: int


class Known(NamedTuple):
    """Everything that routes depend on, frozen."""

    own: tuple[int, ...]
    first_hops: list[FirstHop]
    edges: Mapping[int, Mapping[int, int]]  # by main address
    mains: Mapping[int, int]  # by alias
    links: list[UsableLink]  # to neighbours with several links
    networks: list[tuple[int, tuple[Network, ...]]]  # accepted networks, by who announces them


class Routes:
    """The routes of one moment."""

    def __init__(self, known: Known) -> None:
        self._known = known

    @cached_property
    def reach(self) -> Reach:
        """Returns reachable main addresses; far cheaper than the paths."""
        return Reach([node for node, _ in self._known.first_hops], self._known.edges)

    @cached_property
    def paths(self) -> Paths:
        """Returns paths by main address."""
        return Paths(self._known.own, self._known.first_hops, self._known.edges)

    def host_forwarding(self, address: int) -> Forwarding | None:
        """Returns the same as ``host_forwardings`` for one address. Searches no further than there."""
        if self._known.mains or self._known.links:
            return self.host_forwardings.get(address)
        return self.paths.forwarding(address)

    @cached_property
    def host_forwardings(self) -> Mapping[int, Forwarding]:
        """Returns forwardings by main address and alias, nearest first."""
        own, mains = self._known.own, self._known.mains
        forwardings = self.paths.forwardings()
        for alias, main in mains.items():
            if main in forwardings and alias not in forwardings and alias not in own:
                forwardings[alias] = forwardings[main]
        # A neighbour's own interfaces are reached over the links to them, if any works.
        for link in self._known.links:
            if link.remote in forwardings and forwardings[link.remote].hops == 1:
                forwardings[link.remote] = Forwarding(1, link.remote, link.interface)
        return forwardings

    @cached_property
    def net_forwardings(self) -> Mapping[Network, Forwarding]:
        return {network: Forwarding(*path[1:]) for network, path in self._net_paths.items()}

    def hosts(self) -> dict[int, Route]:
        direct = {(link.remote, link.interface): link.cost for link in self._known.links}
        paths, mains = self.paths, self._known.mains
        routes = {}
        for address, forwarding in self.host_forwardings.items():
            cost = paths.cost(address if paths.forwarding(address) is not None else mains[address])
            if forwarding.gateway == address:
                cost = direct.get((address, forwarding.interface), cost)
            routes[address] = Route(forwarding.gateway, forwarding.interface, forwarding.hops, cost / SCALE)
        return routes

    def nets(self) -> dict[Network, Route]:
        return {
            network: Route(path.gateway, path.interface, path.hops, path.cost / SCALE)
            for network, path in self._net_paths.items()
        }

    @cached_property
    def _net_paths(self) -> dict[Network, Path]:
        best: dict[Network, Path] = {}
        for gateway, networks in self._known.networks:
            path = self.paths.get(gateway)
            if path is None:
                continue
            for network in networks:
                if network not in best or path < best[network]:
                    best[network] = path
        return best


class Routing:
    def __init__(
        self,
        own: tuple[int, ...],
        neighbourhood: Neighbourhood,
        topology: Topology,
        aliases: Announced[int],
        networks: Announced[Network],
        manet: Manet,
        accepted: AcceptedNetworks,
    ) -> None:
        self._own = own
        self._all_own = frozenset(own)
        self._neighbourhood = neighbourhood
        self._topology = topology
        self._aliases = aliases
        self._networks = networks
        self._manet = manet
        self._accepted = accepted
        self._seen: tuple[int, ...] = ()
        self._routes = Routes(Known(own, [], {}, {}, [], []))
        self._mains: dict[int, int] = {}
        self._mains_seen: tuple[int, ...] | None = None

    @property
    def alias_changes(self) -> int:
        return self._aliases.changes

    def current_routes(self) -> Routes:
        """Returns the same object until something that routes depend on changes."""
        symmetric = self._neighbourhood.symmetric()
        origins = self._topology.origins
        # The lists in the HELLOs of neighbours without a TC so far are used instead.
        without_tc = [neighbour for neighbour, _ in symmetric if neighbour.address not in origins]
        seen = (
            self._neighbourhood.link_changes,
            self._topology.changes,
            self._aliases.changes,
            self._networks.changes,
            self._neighbourhood.two_hop_changes if without_tc else -1,
        )
        if seen != self._seen:
            self._seen = seen
            self._routes = Routes(self._known(symmetric, without_tc))
        return self._routes

    def mains(self) -> Mapping[int, int]:
        """Returns main addresses by alias, from MID messages and from the senders of HELLOs.

        An address that sends HELLOs of its own is no alias, whatever others say.
        """
        seen = (self._aliases.changes, self._neighbourhood.link_changes)
        if seen != self._mains_seen:
            self._mains_seen = seen
            self._mains = {}
            for main, aliases in self._aliases.each():
                for alias in aliases:
                    if self._manet.belongs(alias) and alias not in self._neighbourhood.neighbours:
                        self._mains.setdefault(alias, main)
            for link in self._neighbourhood.each_link():
                if link.remote != link.neighbour.address:
                    self._mains[link.remote] = link.neighbour.address
        return self._mains

    def is_urgent(self, before: Mapping[int, int], after: Mapping[int, int]) -> bool:
        """Says whether other nodes should learn at once of edges that came or went.

        They should if an edge leads to nodes that were unreachable, or if a good edge vanished. Bad edges
        come and go.
        """
        gone = before.keys() - after.keys()
        if gone and min([before[target] for target in gone]) < _GOOD:
            return True
        come = after.keys() - before.keys() - self._all_own
        return bool(come) and not self._routes.reach.covers(come)

    def _known(self, symmetric: list[tuple[Neighbour, Link]], without_tc: list[Neighbour]) -> Known:
        return Known(
            own=self._own,
            first_hops=[
                (neighbour.address, (link.cost, 1, link.remote, link.interface))
                for neighbour, link in symmetric
                if link.cost < BROKEN
            ],
            edges=self._edges(without_tc),
            mains=self.mains(),
            links=[
                UsableLink(link.remote, link.interface, link.cost)
                for link in self._neighbourhood.each_link()
                if link.cost < BROKEN and len(link.neighbour.links) > 1
            ],
            networks=[
                (gateway, tuple(network for network in networks if self._accepted.accepts(*network)))
                for gateway, networks in self._networks.each()
            ],
        )

    def _edges(self, without_tc: list[Neighbour]) -> dict[int, Mapping[int, int]]:
        edges = self._topology.costs.copy()
        mains = self.mains()
        for neighbour in without_tc:
            edges[neighbour.address] = topology.usable(
                {mains.get(address, address): cost for address, cost in neighbour.two_hop.costs.items()},
                self._manet,
            )
        return edges
