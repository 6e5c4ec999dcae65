"""Interprets olsrd's tables, from any of its plug-ins.

Costs are ETX. A broken link is shown as 2²² and a broken route as 2³²−1, in text as INFINITE. Without link
quality (LinkQualityLevel 0) every cost in the topology is 0: then the links that are listed exist, and each
costs one hop.
"""

from collections.abc import Container, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from operator import itemgetter
from typing import NamedTuple

from node_agent.linkstate.reader import Edge, Edges, Reading, ipv4

BROKEN = 2.0**22


class Link(NamedTuple):
    """A directed link, by any addresses of its two ends. ``delivery`` None: follows from the cost."""

    sender: str
    receiver: str
    cost: float
    delivery: float | None = None


class Tables(NamedTuple):
    """``own``: the addresses of the daemon's interfaces, if it lists them.

    ``hop_count``: the daemon is known not to measure link quality.
    """

    links: Sequence[Link | tuple[str, str, float, float | None]]
    aliases: Mapping[str, str] = {}
    own: Sequence[str] = ()
    hop_count: bool = False


def reading(tables: Tables, source: str) -> Reading:
    """Returns the reading. If a link is listed twice, the later one counts: the peer's report comes after the
    own.
    """
    ends = dict.fromkeys(chain.from_iterable(map(itemgetter(0, 1), tables.links)))
    aliases = _all_aliases(tables, ends)
    mains = {end: ipv4(aliases.get(end, end)) for end in ends}
    usable = [cost for _, _, cost, _ in tables.links if cost < BROKEN]
    hop_count = tables.hop_count or (bool(usable) and not any(usable))
    edges: Edges = {}
    for one, other, cost, delivery in tables.links:
        sender, receiver = mains[one], mains[other]
        edge = Edge(1.0) if hop_count else _edge(cost, delivery)
        if sender == receiver:
            continue
        if (row := edges.get(sender)) is None:
            row = edges[sender] = {}
        if receiver not in edges:
            edges[receiver] = {}
        if edge is None:
            row.pop(receiver, None)
        else:
            row[receiver] = edge
    return Reading(edges, "hops" if hop_count else "etx", source, aliases)


@lru_cache(maxsize=4096)  # few costs, each on many links
def _edge(cost: float, delivery: float | None) -> Edge | None:
    if delivery == 0 or not 0 < cost < BROKEN:
        return None
    return Edge(cost, min(1.0, 1 / cost if delivery is None else delivery))


def _all_aliases(tables: Tables, ends: Container[str]) -> dict[str, str]:
    """Returns the aliases of MID messages and our own: a daemon sends itself no MID."""
    aliases = {ipv4(alias): ipv4(main) for alias, main in tables.aliases.items()}
    own = [ipv4(address) for address in tables.own]
    main = next((address for address in own if address in ends), own[0] if own else "")
    return aliases | {address: main for address in own if address != main}
