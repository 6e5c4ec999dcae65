"""Cheapest paths (Dijkstra). Of equal costs the path with fewer hops wins, then the lower gateway address."""

from collections.abc import Iterable, Mapping
from heapq import heappop, heappush
from typing import NamedTuple


class Path(NamedTuple):
    cost: int
    hops: int
    gateway: int  # interface address of the neighbour
    interface: int


MAX_DESTINATIONS = 2048
"""The nearest ones count: who tells of more than there can be must not keep the kernel busy with them."""

_NONE: Mapping[int, int] = {}
_COST = 48  # above 8 bits of hops, 32 of the gateway's address and 8 of the interface's number
_HOP = 1 << 40
_FAR = 1 << 128


def cheapest(
    own: int, first_hops: Iterable[tuple[int, Path]], edges: Mapping[int, Mapping[int, int]]
) -> dict[int, Path]:
    """Paths from ``own`` to whatever can be reached, by destination, nearest first."""
    # A path is one number that sorts as the path does: most of the time goes into adding and comparing them.
    best = {own: -1}
    heap: list[tuple[int, int]] = []
    for node, path in first_hops:
        label = _label(path)
        if node not in best or label < best[node]:
            best[node] = label
            heappush(heap, (label, node))
    done: dict[int, Path] = {}
    known = best.get
    while heap and len(done) < MAX_DESTINATIONS:
        label, node = heappop(heap)
        if label != best[node]:
            continue
        done[node] = _path(label)
        label += _HOP
        for target, cost in edges.get(node, _NONE).items():
            reached = label + (cost << _COST)
            if reached < known(target, _FAR):
                best[target] = reached
                heappush(heap, (reached, target))
    return done


def _label(path: Path) -> int:
    cost, hops, gateway, interface = path
    return cost << _COST | hops << 40 | gateway << 8 | interface


def _path(label: int) -> Path:
    return Path(label >> _COST, label >> 40 & 0xFF, label >> 8 & 0xFFFFFFFF, label & 0xFF)
