"""From ground truth, over time: how many neighbours nodes had, how many hops sources were from a sink."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from orchestrator.analytics.connectivity import LinkChange

Neighbours = dict[str, set[str]]


class Moment(NamedTuple):
    t_ns: int
    mean: float
    least: int
    most: int
    hops: int | None
    """Of the source that is farthest from its nearest sink; None if a source has no path to any."""


def moments(
    changes: Iterable[LinkChange],
    nodes: Iterable[str],
    sources: Sequence[str],
    sinks: Sequence[str],
    times_ns: Sequence[int],
) -> list[Moment]:
    """At each of ``times_ns``, in order. A node that is not in ``nodes`` counts from its first link on."""
    neighbours: Neighbours = {node: set() for node in nodes}
    coming = sorted(changes, reverse=True)
    found = []
    for t_ns in times_ns:
        while coming and coming[-1][0] <= t_ns:
            _, src, dst, up = coming.pop()
            peers = neighbours.setdefault(src, set())
            neighbours.setdefault(dst, set())
            (peers.add if up else peers.discard)(dst)
        degrees = [len(peers) for peers in neighbours.values()] or [0]
        hops = _farthest(neighbours, sources, frozenset(sinks))
        found.append(Moment(t_ns, sum(degrees) / len(degrees), min(degrees), max(degrees), hops))
    return found


def _farthest(neighbours: Neighbours, sources: Sequence[str], sinks: frozenset[str]) -> int | None:
    hops = [_hops(neighbours, source, sinks) for source in sources]
    known = [count for count in hops if count is not None]
    return max(known) if known and len(known) == len(hops) else None


def _hops(neighbours: Neighbours, source: str, sinks: frozenset[str]) -> int | None:
    seen, frontier, count = {source}, {source}, 0
    while frontier:
        if frontier & sinks:
            return count
        frontier = {peer for node in frontier for peer in neighbours.get(node, ())} - seen
        seen |= frontier
        count += 1
    return None
