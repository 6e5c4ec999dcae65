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
    """Paths from the node with the addresses ``own``, by destination, nearest first. No edge may cost 0.

    They are searched as far as they are asked for: a node that sends needs few.
    """

    __slots__ = ("_costs", "_found", "_search")

    def __init__(
        self, own: Iterable[int], first_hops: Iterable[FirstHop], edges: Mapping[int, Mapping[int, int]]
    ) -> None:
        self._costs = defaultdict(lambda: _FAR, dict.fromkeys(own, -1))
        self._found: dict[int, int] = {}
        self._search = _search(self._costs, self._found, first_hops, edges)

    def forwarding(self, destination: int) -> Forwarding | None:
        found = self._found.get(destination)
        if found is None:
            if destination not in self._search:  # goes on with the search until it is found
                return None
            found = self._found[destination]
        return unpack(found)

    def forwardings(self) -> dict[int, Forwarding]:
        """Returns the forwardings of all destinations."""
        return {destination: unpack(found) for destination, found in self._all().items()}

    def cost(self, destination: int) -> int:
        """Returns the cost of the path to a destination that has one."""
        return self._costs[destination]

    def __getitem__(self, destination: int) -> Path:
        forwarding = self.forwarding(destination)
        if forwarding is None:
            raise KeyError(destination)
        return Path(self._costs[destination], *forwarding)

    def __iter__(self) -> Iterator[int]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def _all(self) -> Mapping[int, int]:
        for _ in self._search:
            pass
        return self._found


def _search(
    costs: defaultdict[int, int],
    found: dict[int, int],
    first_hops: Iterable[FirstHop],
    edges: Mapping[int, Mapping[int, int]],
) -> Iterator[int]:
    """Puts one destination after the other into ``found``, with its packed forwarding, and yields it."""
    # For speed costs and forwardings are plain integers, and so are the heap's entries: cost above address.
    forwardings: dict[int, int] = {}
    for node, (cost, hops, gateway, interface) in first_hops:
        forwarding = pack(hops, gateway, interface)
        if (cost, forwarding) < (costs[node], forwardings.get(node, _FAR)):
            costs[node], forwardings[node] = cost, forwarding
    heap = [costs[node] << 32 | node for node in forwardings]
    heapify(heap)
    while heap and len(found) < MAX_DESTINATIONS:
        entry = heappop(heap)
        spent, node = entry >> 32, entry & _ADDRESS
        if spent != costs[node]:
            continue
        found[node] = forwarding = forwardings[node]
        yield node
        forwarding += _HOP
        for target, cost in edges.get(node, _NONE).items():
            reached = spent + cost
            known = costs[target]
            if reached < known:
                costs[target], forwardings[target] = reached, forwarding
                heappush(heap, reached << 32 | target)
            elif reached == known and forwarding < forwardings[target]:
                forwardings[target] = forwarding


def pack(hops: int, gateway: int, interface: int) -> int:
    """Packs a forwarding into one integer that sorts like it."""
    return hops << 40 | gateway << 8 | interface


@lru_cache(maxsize=4096)
def unpack(forwarding: int) -> Forwarding:
    return Forwarding(forwarding >> 40, forwarding >> 8 & _ADDRESS, forwarding & 0xFF)
