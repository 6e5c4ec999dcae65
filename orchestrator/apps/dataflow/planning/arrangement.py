"""Fills a plan for placement policies: one replica after the other, each knowing where those before it are.

All policies fill the same sequence of places: sources and sinks, then replica 0 of every operator, then
replica 1, and so on. A choice depends only on what came before it in this sequence, so plans are nested
across k: a larger k adds replicas and moves none. Under every policy, sources and sinks are where random
placement puts them, on nodes of their own: roles of nodes decide where cameras and viewers are, not the
planner.
"""

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from statistics import fmean
from types import MappingProxyType

from node_agent.apps.dataflow.model.query import Query
from orchestrator.planning.distances import Distance

_ROUNDING = 1e-9

Slot = tuple[str, int]
"""An operator and the index of one of its replicas."""
Placed = Mapping[Slot, str]
Choose = Callable[[Slot, Placed], str | None]
"""Returns the node of the next replica; None: no node is left that could host it."""


def shuffled(nodes: Sequence[str], seed: int | str) -> list[str]:
    """Orders nodes by a digest of seed and name, so that the order depends on nothing else."""
    return sorted(nodes, key=lambda node: hashlib.sha256(f"placement/{seed}/{node}".encode()).digest())


def arranged(query: Query, counts: Mapping[str, int], choose: Choose) -> dict[Slot, str]:
    """Returns a node for each replica, in the query's order; replicas for which no node is left are missing.

    The sequence is filled as if every operator had as many replicas as the one with most, so that growing one
    operator leaves the others in place. Replicas without a place then get places that the others do not use.
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


def _filled(slots: Sequence[Slot], before: Placed, choose: Choose) -> dict[Slot, str]:
    placed = dict(before)
    for slot in slots:
        if (node := choose(slot, MappingProxyType(placed))) is not None:
            placed[slot] = node
    return placed


def hosted(placed: Placed) -> dict[str, list[str]]:
    """Returns the operators on each node that has some."""
    found: dict[str, list[str]] = {}
    for (name, _), node in placed.items():
        found.setdefault(node, []).append(name)
    return found


def ends_of(query: Query, placed: Placed, operator: str) -> tuple[list[str], list[str]]:
    """Returns the nodes of the sources that feed an operator, and those of the sinks that it feeds; sources
    and sinks for which there was no node are missing.
    """
    sources = [name for name in query.sources() if operator in query.reachable_from([name])]
    sinks = [name for name in query.sinks() if name in query.reachable_from([operator])]
    above, below = ([placed[name, 0] for name in ends if (name, 0) in placed] for ends in (sources, sinks))
    return above, below


def way_through(node: str, above: Collection[str], below: Collection[str], distance: Distance) -> float:
    """Returns how long the way from sources to sinks through a node is, on average over these."""
    to_it = fmean(distance(end, node) for end in above) if above else 0.0
    return to_it + (fmean(distance(node, end) for end in below) if below else 0.0)


def fits_in(needs: Mapping[str, float], operators: Iterable[str], cores: int) -> bool:
    """Says whether these operators together need no more CPU than a node has."""
    return sum(needs[name] for name in operators) <= cores + _ROUNDING


def within_roles(roles: Mapping[str, Collection[str]], operators: Collection[str], choose: Choose) -> Choose:
    """Wraps ``choose``:
    operators whose name is a role go to nodes of that role only, others to other nodes.
    """
    meant = {node: [role for role in own if role in operators] for node, own in roles.items()}
    wanted = {role for own in meant.values() for role in own}

    def allowed(operator: str, node: str) -> bool:
        return operator in meant[node] if operator in wanted else not meant[node]

    def heedful(slot: Slot, placed: Placed) -> str | None:
        # ``choose`` sees a forbidden node as an occupied one.
        barred = [node for node in meant if not allowed(slot[0], node)]
        return choose(slot, {**{("", i): node for i, node in enumerate(barred)}, **placed})

    return heedful if wanted else choose
