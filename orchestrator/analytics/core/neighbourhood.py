"""Computes from ground truth, over time, how many neighbours nodes had and how many hops sources were from a
sink.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from orchestrator.analytics.core.connectivity import LinkChange

Neighbours = dict[str, set[str]]


class Moment(NamedTuple):
    t_ns: int
    mean: float
    least: int
    most: int


def moments(changes: Iterable[LinkChange], nodes: Iterable[str], times_ns: Sequence[int]) -> list[Moment]:
    """Counts neighbours at each of ``times_ns``, in order. A node that is not in ``nodes`` counts from its
    first link on.
    """
    found = []
    for t_ns, neighbours in over_time(changes, nodes, times_ns):
        degrees = [len(peers) for peers in neighbours.values()] or [0]
        found.append(Moment(t_ns, sum(degrees) / len(degrees), min(degrees), max(degrees)))
    return found


def hops(
    changes: Iterable[LinkChange], sources: Sequence[str], sinks: Sequence[str], times_ns: Sequence[int]
) -> list[tuple[int, int | None]]:
    """Returns, at each of ``times_ns``, the hops from a source to its nearest sink, for the source that is
    farthest away.

    None if a source has no path to any sink.
    """
    wanted = frozenset(sinks)
    states = over_time(changes, (), times_ns)
    return [(t_ns, _farthest(neighbours, sources, wanted)) for t_ns, neighbours in states]


def over_time(
    changes: Iterable[LinkChange], nodes: Iterable[str], times_ns: Sequence[int]
) -> Iterator[tuple[int, Neighbours]]:
    """Yields whom each node reached at each of ``times_ns``, in order; the same mapping, which changes."""
    neighbours: Neighbours = {node: set() for node in nodes}
    coming = sorted(changes, reverse=True)
    for t_ns in times_ns:
        while coming and coming[-1][0] <= t_ns:
            _, src, dst, up = coming.pop()
            peers = neighbours.setdefault(src, set())
            neighbours.setdefault(dst, set())
            (peers.add if up else peers.discard)(dst)
        yield t_ns, neighbours


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
