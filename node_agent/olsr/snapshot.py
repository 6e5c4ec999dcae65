"""Builds a daemon's view, the content of its sets at one moment, and the costs in it, as frozen values."""

from collections.abc import Iterator, Sequence
from operator import itemgetter

from node_agent.olsr.announced import Announced
from node_agent.olsr.neighbourhood import Link, Neighbourhood
from node_agent.olsr.outbox import NEVER
from node_agent.olsr.paths import Paths
from node_agent.olsr.quality import BROKEN, SCALE
from node_agent.olsr.routing import Routes
from node_agent.olsr.speaker import Interface, Speaker
from node_agent.olsr.topology import Topology
from node_agent.olsr.view import (
    Costs,
    EdgeView,
    HnaView,
    InterfaceView,
    LinkView,
    MidView,
    NeighbourView,
    RouteView,
    TwoHop,
    View,
)


def take(
    now: int,
    started: int,
    interfaces: Sequence[Interface],
    neighbourhood: Neighbourhood,
    topology: Topology,
    aliases: Announced[int],
    networks: Announced[tuple[int, int]],
    routes: Routes,
    speaker: Speaker,
) -> View:
    main = interfaces[0].address
    hosts, nets = routes.hosts(), routes.nets()
    return View(
        taken_ns=now,
        started_ns=started,
        main_address=main,
        ansn=speaker.ansn,
        links=tuple(_link(link, interfaces[link.interface], now) for link in neighbourhood.each_link()),
        neighbours=tuple(_neighbours(neighbourhood, now)),
        topology=tuple(
            sorted((*_own_edges(main, neighbourhood), *_edges(topology, routes.paths, now)), key=_ends)
        ),
        routes=tuple(
            RouteView(
                network, prefix, route.gateway, route.hops, route.cost, interfaces[route.interface].name
            )
            for network, prefix, route in sorted(
                [
                    *((address, 32, route) for address, route in hosts.items()),
                    *((network, mask.bit_count(), route) for (network, mask), route in nets.items()),
                ]
            )
        ),
        mid=tuple(
            MidView(originator, tuple(sorted(known)), _left(max(known.values(), default=now), now))
            for originator, known in sorted(aliases.each())
        ),
        hna=tuple(
            HnaView(originator, network, mask.bit_count(), _left(until, now))
            for originator, known in sorted(networks.each())
            for (network, mask), until in sorted(known.items())
        ),
        interfaces=tuple(
            InterfaceView(
                name=interface.name,
                address=interface.address,
                mtu=schedule.outbox.room,
                packet_seqno=schedule.packet_seqno,
                ttl_index=schedule.tcs,
                next_hello_ms=_left(schedule.hello_ns, now),
                next_tc_ms=_left(schedule.tc_ns, now),
                next_mid_ms=None if schedule.mid_ns == NEVER else _left(schedule.mid_ns, now),
                next_hna_ms=None if schedule.hna_ns == NEVER else _left(schedule.hna_ns, now),
            )
            for interface, schedule in zip(interfaces, speaker.schedules, strict=True)
        ),
    )


def costs(
    interfaces: Sequence[Interface], neighbourhood: Neighbourhood, topology: Topology, aliases: Announced[int]
) -> Costs:
    own, share = tuple(interface.address for interface in interfaces), _FRACTIONS
    edges = [
        (own[0], neighbour.address, link.cost / SCALE, share[link.quality] * share[link.neighbour_quality])
        for neighbour, link in neighbourhood.symmetric()
        if link.cost < BROKEN
    ]
    for address, origin in topology.origins.items():
        edges += [
            (address, destination, edge.cost / SCALE, share[edge.quality] * share[edge.neighbour_quality])
            for destination, edge in origin.edges.items()
            if edge.cost < BROKEN
        ]
    edges.sort(key=_ends)
    mains = {alias: main for main, known in sorted(aliases.each()) for alias in sorted(known)}
    return Costs(own, edges, mains)


_ends = itemgetter(0, 1)


def _link(link: Link, interface: Interface, now: int) -> LinkView:
    assert link.last_hello is not None
    return LinkView(
        interface=interface.name,
        local=interface.address,
        remote=link.remote,
        neighbour=link.neighbour.address,
        status=link.status,
        previous_status=link.previous_status or "UNSPECIFIED",
        validity_ms=_left(link.until, now),
        symmetry_ms=_left(link.symmetric_until, now),
        asymmetry_ms=_left(link.asymmetric_until, now),
        vtime_ms=link.vtime_ns // 1_000_000,
        hello_interval_ms=link.last_hello.hello_ns // 1_000_000,
        loss_ms=_left(link.loss_ns, now),
        quality=_fraction(link.quality),
        neighbour_quality=_fraction(link.neighbour_quality),
        cost=_metric_cost(link.cost),
    )


def _neighbours(neighbourhood: Neighbourhood, now: int) -> Iterator[NeighbourView]:
    for neighbour in neighbourhood.neighbours.values():
        yield NeighbourView(
            address=neighbour.address,
            symmetric=neighbour.best is not None,
            willingness=neighbour.willingness,
            is_mpr=neighbour.is_mpr,
            is_mpr_selector=neighbour.selector_until > now,
            links=len(neighbour.links),
            two_hop=tuple(
                TwoHop(address, _metric_cost(neighbour.two_hop.costs[address]), _left(until, now))
                for address, until in neighbour.two_hop.each_until()
            ),
        )


def _own_edges(main: int, neighbourhood: Neighbourhood) -> Iterator[EdgeView]:
    for neighbour, link in neighbourhood.symmetric():
        yield EdgeView(
            last_hop=main,
            destination=neighbour.address,
            quality=_fraction(link.quality),
            neighbour_quality=_fraction(link.neighbour_quality),
            cost=_metric_cost(link.cost),
            path_cost=0.0,
            path_hops=0,
            validity_ms=0,
            ansn=0,
            edge_ansn=0,
            seqno=0,
            message_hops=0,
            ignored=0,
            own=True,
        )


def _edges(topology: Topology, paths: Paths, now: int) -> Iterator[EdgeView]:
    for address, origin in topology.origins.items():
        path = paths.get(address)
        for destination, edge in origin.edges.items():
            yield EdgeView(
                last_hop=address,
                destination=destination,
                quality=_fraction(edge.quality),
                neighbour_quality=_fraction(edge.neighbour_quality),
                cost=_metric_cost(edge.cost),
                path_cost=None if path is None else path.cost / SCALE,
                path_hops=0 if path is None else path.hops,
                validity_ms=_left(origin.until, now),
                ansn=origin.ansn,
                edge_ansn=edge.ansn,
                seqno=origin.seqno,
                message_hops=origin.hops,
                ignored=origin.ignored,
                own=False,
            )


def _left(until: int, now: int) -> int:
    return max(0, until - now) // 1_000_000


def _fraction(byte: int) -> float:
    return _FRACTIONS[byte]


# Cut to ten bits, as olsrd prints them.
_FRACTIONS = tuple(byte * 1024 // 255 / 1024 for byte in range(256))


def _metric_cost(cost: int) -> float | None:
    return None if cost >= BROKEN else cost / SCALE
