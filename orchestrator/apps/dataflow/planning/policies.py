"""Placement policies: which node hosts the next replica, given where the ones before it are.

All of them fill the same sequence of places: sources and sinks, then replica 0 of every operator, then
replica 1, and so on. A choice depends on what came before it in this sequence alone, so plans are nested
across k: a larger k adds replicas and moves none. Sources and sinks are where random placement puts them
under every policy, on nodes of their own: where a camera or a viewer is, is not for a planner to say, but for
whoever gives nodes roles.
"""

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from math import inf
from statistics import fmean

from node_agent.apps.dataflow.model.query import Query
from orchestrator.planning.distances import Distance

Slot = tuple[str, int]
"""An operator and the index of one of its replicas."""
Placed = Mapping[Slot, str]
Policy = Callable[[Slot, Placed], str | None]
"""None: no node is left that could host it."""

DETOUR = 2 / 3
"""More than a half: a step away from everybody lengthens the way twice, and must not pay."""
_ROUNDING = 1e-9


def shuffled(nodes: Sequence[str], seed: int | str) -> list[str]:
    """By digest of seed and name, so that it depends on nothing else, not even on the order of the nodes."""
    return sorted(nodes, key=lambda node: hashlib.sha256(f"placement/{seed}/{node}".encode()).digest())


def arranged(query: Query, counts: Mapping[str, int], choose: Policy) -> dict[Slot, str]:
    """A node for each replica, in the query's order; those for which no node is left are missing.

    The sequence is filled as if every operator had as many replicas as the one with most, so that growing one
    leaves the others in place. Replicas for which no place is left then fill what the others do not use.
    """
    ends = [name for name in query.names() if name not in query.inner()]
    rounds = max(counts.values())
    sequence = [(name, 0) for name in ends] + [(name, i) for i in range(rounds) for name in query.inner()]
    wanted = [(name, index) for name, index in sequence if index < counts[name]]
    shared = _filled(sequence, {}, choose)
    kept = {slot: shared[slot] for slot in wanted if slot in shared}
    placed = _filled([slot for slot in wanted if slot not in kept], kept, choose)
    in_order = [(name, index) for name, k in counts.items() for index in range(k)]
    return {slot: placed[slot] for slot in in_order if slot in placed}


def _filled(slots: Sequence[Slot], before: Placed, choose: Policy) -> dict[Slot, str]:
    placed = dict(before)
    for slot in slots:
        if (node := choose(slot, placed)) is not None:
            placed[slot] = node
    return placed


def heeding(roles: Mapping[str, Collection[str]], operators: Collection[str], choose: Policy) -> Policy:
    """``choose``, but an operator whose name is a role of some nodes goes to these, and the others do not."""
    meant = {node: [role for role in own if role in operators] for node, own in roles.items()}
    wanted = {role for own in meant.values() for role in own}

    def allowed(operator: str, node: str) -> bool:
        return operator in meant[node] if operator in wanted else not meant[node]

    def heedful(slot: Slot, placed: Placed) -> str | None:
        # To whoever chooses, a node that is not allowed looks like one that has somebody on it.
        barred = [node for node in meant if not allowed(slot[0], node)]
        return choose(slot, {**{("", i): node for i, node in enumerate(barred)}, **placed})

    return heedful if wanted else choose


def at_random(order: Sequence[str]) -> Policy:
    """As in the paper: one operator per node, drawn by the seed that ``order`` is of."""

    def choose(slot: Slot, placed: Placed) -> str | None:
        taken = frozenset(placed.values())
        return next((node for node in order if node not in taken), None)

    return choose


def spread(query: Query, order: Sequence[str], distance: Distance) -> Policy:
    """Replicas of an operator far from each other, but not out of the way; one operator per node.

    The first is where random placement puts it. Each further one maximises its distance to the nearest
    replica before it, less ``DETOUR`` of the way through it, from the sources above and on to the sinks.
    """
    sources = {
        name: [s for s in query.sources() if name in query.reachable_from([s])] for name in query.names()
    }
    sinks = {name: [s for s in query.sinks() if s in query.reachable_from([name])] for name in query.names()}

    def choose(slot: Slot, placed: Placed) -> str | None:
        operator, index = slot
        taken = frozenset(placed.values())
        free = [node for node in order if node not in taken]
        siblings = [placed[operator, i] for i in range(index) if (operator, i) in placed]
        if not siblings or not free:
            return free[0] if free else None
        above = [placed[source, 0] for source in sources[operator]]
        below = [placed[sink, 0] for sink in sinks[operator]]

        def merit(node: str) -> float:
            way = fmean(distance(end, node) for end in above) + fmean(distance(node, end) for end in below)
            if way == inf:
                return -inf  # nothing would ever pass through it
            return min(distance(node, sibling) for sibling in siblings) - DETOUR * way

        return max(free, key=merit)  # the first of equals: the order breaks ties

    return choose


def colocate(
    query: Query, order: Sequence[str], needs: Mapping[str, float], cores: Mapping[str, int]
) -> Policy:
    """Replicas of consecutive operators on one node, as long as what they need together fits into its CPU.

    A replica joins its predecessor of the same index, else it takes a node of its own that can carry it, or
    any if there is none; when no node is left it joins whoever has room. Replicas of one operator never
    share a node.
    """
    inner = frozenset(query.inner())

    def choose(slot: Slot, placed: Placed) -> str | None:
        operator, index = slot
        hosted: dict[str, list[str]] = {}
        for (name, _), node in placed.items():
            hosted.setdefault(node, []).append(name)
        fresh = [node for node in order if node not in hosted]
        if operator not in inner:
            return fresh[0] if fresh else None

        def can_join(node: str) -> bool:
            others = hosted[node]
            if operator in others or not inner.issuperset(others):
                return False
            return sum(needs[name] for name in (*others, operator)) <= cores[node] + _ROUNDING

        before = [placed[name, index] for name in query.upstream(operator) if (name, index) in placed]
        able = (node for node in fresh if needs[operator] <= cores[node] + _ROUNDING)
        choices = (
            *(node for node in before if can_join(node)),
            *able,
            *fresh[:1],
            *(node for node in order if node in hosted and can_join(node)),
        )
        return choices[0] if choices else None

    return choose
