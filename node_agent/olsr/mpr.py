"""Selects multipoint relays: by path cost like olsrd, or by degree as in RFC 3626."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from msgspec import Struct

from node_agent.olsr.quality import BROKEN

WILL_NEVER, WILL_ALWAYS = 0, 7

_ADDRESS = (1 << 32) - 1


class Candidate(Struct, frozen=True, gc=False):
    """A symmetric neighbour."""

    address: int
    willingness: int
    cost: int
    reaches: Mapping[int, int]  # main addresses of its neighbours → cost of the second hop


def by_cost(candidates: Sequence[Candidate], coverage: int) -> set[int]:
    """Selects, for each node two hops away, the ``coverage`` cheapest relays that beat a direct link."""
    direct = {candidate.address: candidate.cost for candidate in candidates}
    # For speed an option is an integer: the cost, above the unwillingness, above the address.
    options_of = defaultdict[int, list[int]](list)
    for each in candidates:
        if each.willingness == WILL_NEVER:
            continue
        cost, relay = each.cost, (WILL_ALWAYS - each.willingness) << 32 | each.address
        for target, second in each.reaches.items():
            through = cost + second
            if through < direct.get(target, BROKEN):
                options_of[target].append(through << 40 | relay)
    chosen = {each.address for each in candidates if each.willingness == WILL_ALWAYS}
    for options in options_of.values():
        if len(options) > coverage:
            options.sort()
        chosen.update([option & _ADDRESS for option in options[:coverage]])
    return chosen


def by_degree(candidates: Sequence[Candidate], coverage: int) -> set[int]:
    """Selects few relays, so that each node two hops away has ``coverage`` of them if possible (RFC 3626,
    section 8.3.1).
    """
    direct = {candidate.address for candidate in candidates}
    reach = {
        each.address: {target for target in each.reaches if target not in direct}
        for each in candidates
        if each.willingness != WILL_NEVER
    }
    rank = {each.address: each.willingness for each in candidates}
    missing: dict[int, int] = {}
    for targets in reach.values():
        for target in targets:
            missing[target] = min(coverage, missing.get(target, 0) + 1)
    chosen: set[int] = set()

    def choose(address: int) -> None:
        chosen.add(address)
        for target in reach[address]:
            missing[target] = max(0, missing[target] - 1)

    for address in reach:
        if rank[address] == WILL_ALWAYS:
            choose(address)
    while any(missing.values()):
        best = max(
            (address for address in reach if address not in chosen),
            key=lambda a: (
                any(missing[target] for target in reach[a]),
                rank[a],
                sum(missing[target] > 0 for target in reach[a]),
                len(reach[a]),
                -a,
            ),
        )
        choose(best)
    return chosen
