"""Cheapest paths (Dijkstra). Of equal costs the path with fewer hops wins, then the lower gateway address."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from heapq import heapify, heappop, heappush
from typing import NamedTuple


class Path(NamedTuple):
    cost: int
    hops: int
    gateway: int  # interface address of the neighbour
    interface: int


class Way(NamedTuple):
    """A path without its cost, which changes far more often."""

    hops: int
    gateway: int
    interface: int


MAX_DESTINATIONS = 2048
"""The nearest ones count: who tells of more than there can be must not keep the kernel busy with them."""

_NONE: Mapping[int, int] = {}
_HOP = 1 << 40
_ADDRESS = (1 << 32) - 1
_FAR = 1 << 62


class Paths(Mapping[int, Path]):
    """Paths by destination, nearest first. ``ways`` has the same keys: see ``pack``."""

    __slots__ = ("costs", "ways")

    def __init__(self, costs: Mapping[int, int], ways: Mapping[int, int]) -> None:
        self.costs = costs
        self.ways = ways

    def __getitem__(self, destination: int) -> Path:
        return Path(self.costs[destination], *unpack(self.ways[destination]))

    def __iter__(self) -> Iterator[int]:
        return iter(self.ways)

    def __len__(self) -> int:
        return len(self.ways)


def cheapest(
    own: Iterable[int], first_hops: Iterable[tuple[int, Path]], edges: Mapping[int, Mapping[int, int]]
) -> Paths:
    """Paths from the node with the addresses ``own`` to whatever it can reach. No edge may be free."""
    # Costs and ways are plain numbers, and so is what waits in the heap: cost above address.
    costs = defaultdict(lambda: _FAR, dict.fromkeys(own, -1))
    ways: dict[int, int] = {}
    for node, (cost, hops, gateway, interface) in first_hops:
        way = pack(hops, gateway, interface)
        if (cost, way) < (costs[node], ways.get(node, _FAR)):
            costs[node], ways[node] = cost, way
    heap = [costs[node] << 32 | node for node in ways]
    heapify(heap)
    settled: dict[int, int] = {}
    while heap and len(settled) < MAX_DESTINATIONS:
        entry = heappop(heap)
        spent, node = entry >> 32, entry & _ADDRESS
        if spent != costs[node]:
            continue
        settled[node] = way = ways[node]
        way += _HOP
        for target, cost in edges.get(node, _NONE).items():
            reached = spent + cost
            known = costs[target]
            if reached < known:
                costs[target], ways[target] = reached, way
                heappush(heap, reached << 32 | target)
            elif reached == known and way < ways[target]:
                ways[target] = way
    return Paths(costs, settled)


def pack(hops: int, gateway: int, interface: int) -> int:
    """A way as one number that sorts as the way does."""
    return hops << 40 | gateway << 8 | interface


@lru_cache(maxsize=4096)
def unpack(way: int) -> Way:
    return Way(way >> 40, way >> 8 & _ADDRESS, way & 0xFF)
