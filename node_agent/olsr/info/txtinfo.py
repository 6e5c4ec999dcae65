"""txtinfo: tables of text with columns separated by tabs. The headers are spelled as olsrd spells them."""

from collections.abc import Callable, Iterable, Sequence

from node_agent.olsr.info.request import Dialect
from node_agent.olsr.info.snapshot import Snapshot, cost_text
from node_agent.olsr.view import NeighbourView
from node_agent.olsr.wire import dotted


def _table(name: str, header: str, rows: Iterable[str]) -> str:
    return "\n".join((f"Table: {name}", header, *rows, "", ""))


def _yes(value: bool) -> str:
    return "YES" if value else "NO"


def _neighbour(neighbour: NeighbourView) -> str:
    return "\t".join(
        (
            dotted(neighbour.address),
            _yes(neighbour.symmetric),
            _yes(neighbour.is_mpr),
            _yes(neighbour.is_mpr_selector),
            str(neighbour.willingness),
        )
    )


def _neighbours(snapshot: Snapshot) -> str:
    rows = [f"{_neighbour(each)}\t{len(each.two_hop)}" for each in snapshot.view.neighbours]
    return _table("Neighbors", "IP address\tSYM\tMPR\tMPRS\tWill.\t2-hop count", rows)


def _two_hop(snapshot: Snapshot) -> str:
    rows = [
        "\t".join((_neighbour(each), *(dotted(far.address) for far in each.two_hop)))
        for each in snapshot.view.neighbours
    ]
    return _table("Neighbors", "IP address\tSYM\tMPR\tMPRS\tWill.\t(2-hop address)+", rows)


def _links(snapshot: Snapshot) -> str:
    rows = [
        f"{dotted(link.local)}\t{dotted(link.remote)}\t0.000\t{link.quality:.3f}\t{link.neighbour_quality:.3f}"
        f"\t{cost_text(snapshot.link_cost(link.cost))}"
        for link in snapshot.view.links
    ]
    return _table("Links", "Local IP\tRemote IP\tHyst.\tLQ\tNLQ\tCost", rows)


def _routes(snapshot: Snapshot) -> str:
    rows = [
        f"{dotted(route.destination)}/{route.prefix}\t{dotted(route.gateway)}\t{route.hops}"
        f"\t{cost_text(snapshot.path_cost(route.cost))}\t{route.interface}\t"
        for route in snapshot.view.routes
    ]
    return _table("Routes", "Destination\tGateway IP\tMetric\tETX\tInterface", rows)


def _hna(snapshot: Snapshot) -> str:
    rows = [f"{dotted(hna.network)}/{hna.prefix}\t{dotted(hna.gateway)}" for hna in snapshot.view.hna]
    return _table("HNA", "Destination\tGateway", rows)


def _mid(snapshot: Snapshot) -> str:
    rows = [
        f"{dotted(mid.main)}\t" + "".join(f"\t{dotted(alias)}" for alias in mid.aliases)
        for mid in snapshot.view.mid
    ]
    return _table("MID", "IP address\t(Alias)+", rows)


def _topology(snapshot: Snapshot) -> str:
    rows = [
        f"{dotted(edge.destination)}\t{dotted(edge.last_hop)}\t{edge.quality:.3f}\t{edge.neighbour_quality:.3f}"
        f"\t{cost_text(snapshot.path_cost(edge.cost))}"
        for edge in snapshot.view.topology
    ]
    return _table("Topology", "Dest. IP\tLast hop IP\tLQ\tNLQ\tCost", rows)


def _gateways(snapshot: Snapshot) -> str:
    columns = "Status Gateway IP".ljust(53) + "ETX             Hopcnt Uplink    Downlnk   IPv4    IPv6 Prefix"
    return _table("Gateways", columns, ())


def _smart_gateways(snapshot: Snapshot) -> str:
    columns = (
        " Originator      Prefix                          Uplink    Downlink  PathCost   "
        "IPv4 IPv4-NAT IPv6 Tunnel-Name     Destination     Cost"
    )
    return _table("Smart Gateway IPv4", columns, ())


def _interfaces(snapshot: Snapshot) -> str:
    rows = []
    for each in snapshot.view.interfaces:
        facts = snapshot.interfaces.get(each.name)
        if facts is None:
            rows.append(f"{each.name}\tDOWN")
        else:
            rows.append(
                f"{each.name}\tUP\t{each.mtu}\t{'Yes' if facts.wireless else 'No'}\t{dotted(each.address)}"
                f"\t{facts.netmask}\t{facts.broadcast}"
            )
    return _table("Interfaces", "Name\tState\tMTU\tWLAN\tSrc-Adress\tMask\tDst-Adress", rows)


def _version(snapshot: Snapshot) -> str:
    return f"Version: {snapshot.version}\n\n"


_SECTIONS: dict[str, Callable[[Snapshot], str]] = {
    "nei": _neighbours,
    "lin": _links,
    "rou": _routes,
    "hna": _hna,
    "mid": _mid,
    "top": _topology,
    "gat": _gateways,
    "int": _interfaces,
    "2ho": _two_hop,
    "sgw": _smart_gateways,
    "ver": _version,
}
_ALL = tuple(_SECTIONS)


def render(snapshot: Snapshot, sections: Sequence[str]) -> str:
    return "".join(_SECTIONS[section](snapshot) for section in sections)


TXTINFO = Dialect(
    content_type="text/plain; charset=utf-8",
    sections=_ALL,
    commands={
        **{name: (name,) for name in _ALL},
        "": _ALL,
        "all": _ALL,
        "runtime": _ALL[:-1],
        "startup": _ALL[-1:],
        "neighbours": ("nei", "lin"),
        "con": (),
    },
    render=render,
)
