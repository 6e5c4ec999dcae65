"""Finds cheapest paths (Dijkstra). Among equal costs fewer hops win, then the lower gateway address."""

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


FirstHop = tuple[int, tuple[int, int, int, int]]
"""A neighbour, and the path to it: a plain tuple, because many are made."""


class Forwarding(NamedTuple):
    """A path without its cost, which changes far more often."""

    hops: int
    gateway: int
    interface: int


MAX_DESTINATIONS = 2048
"""Only the nearest count: invented nodes must not keep the kernel busy."""

_NONE: Mapping[int, int] = {}
_HOP = 1 << 40
_ADDRESS = (1 << 32) - 1
_FAR = 1 << 62


class Paths(Mapping[int, Path]):
    """Paths by destination, nearest first. ``forwardings`` has the same keys; see ``pack``."""

    __slots__ = ("costs", "forwardings")

    def __init__(self, costs: Mapping[int, int], forwardings: Mapping[int, int]) -> None:
        self.costs = costs
        self.forwardings = forwardings

    def __getitem__(self, destination: int) -> Path:
        return Path(self.costs[destination], *unpack(self.forwardings[destination]))

    def __iter__(self) -> Iterator[int]:
        return iter(self.forwardings)

    def __len__(self) -> int:
        return len(self.forwardings)


def cheapest(
    own: Iterable[int], first_hops: Iterable[FirstHop], edges: Mapping[int, Mapping[int, int]]
) -> Paths:
    """Finds paths from the node with the addresses ``own`` to all reachable nodes. No edge may cost 0."""
    # For speed costs and forwardings are plain integers, and so are the heap's entries: cost above address.
    costs = defaultdict(lambda: _FAR, dict.fromkeys(own, -1))
    forwardings: dict[int, int] = {}
    for node, (cost, hops, gateway, interface) in first_hops:
        forwarding = pack(hops, gateway, interface)
        if (cost, forwarding) < (costs[node], forwardings.get(node, _FAR)):
            costs[node], forwardings[node] = cost, forwarding
    heap = [costs[node] << 32 | node for node in forwardings]
    heapify(heap)
    settled: dict[int, int] = {}
    while heap and len(settled) < MAX_DESTINATIONS:
        entry = heappop(heap)
        spent, node = entry >> 32, entry & _ADDRESS
        if spent != costs[node]:
            continue
        settled[node] = forwarding = forwardings[node]
        forwarding += _HOP
        for target, cost in edges.get(node, _NONE).items():
            reached = spent + cost
            known = costs[target]
            if reached < known:
                costs[target], forwardings[target] = reached, forwarding
                heappush(heap, reached << 32 | target)
            elif reached == known and forwarding < forwardings[target]:
                forwardings[target] = forwarding
    return Paths(costs, settled)


def pack(hops: int, gateway: int, interface: int) -> int:
    """Packs a forwarding into one integer that sorts like it."""
    return hops << 40 | gateway << 8 | interface


@lru_cache(maxsize=4096)
def unpack(forwarding: int) -> Forwarding:
    return Forwarding(forwarding >> 40, forwarding >> 8 & _ADDRESS, forwarding & 0xFF)
