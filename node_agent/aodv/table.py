"""The routing table of an AODV node and its update rules (RFC 3561, sections 6.1, 6.2 and 6.11).

The rules prevent loops: along a route sequence numbers never fall, and where they are equal the hop count
does; a route that ends gets a sequence number above any in use.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import nsmallest

MAX_ROUTES = 2048
"""More than a network has nodes: invented destinations must not fill the memory."""
MAX_PRECURSORS = 256
_FORGOTTEN = 8  # a full table drops its least credible eighth; one by one would cost too much in a flood

_HALF, _ALL = 1 << 31, 1 << 32


def newer(one: int, other: int) -> bool:
    """Compares sequence numbers, which have 32 bits and wrap around: a number is newer if it is less than
    half the range ahead.
    """
    return 0 < (one - other) % _ALL < _HALF


def ahead(one: int, other: int) -> int:
    """Returns how far ``one`` is ahead of ``other``; 0 or less if it is not newer."""
    return (one - other + _HALF) % _ALL - _HALF


def newest(one: int, other: int) -> int:
    return one if newer(one, other) else other


def after(sequence: int) -> int:
    return (sequence + 1) % _ALL


@dataclass(slots=True)
class Route:
    """``expires_ns``: when a valid route ends, or when an invalid one is forgotten."""

    destination: int
    next_hop: int
    hops: int
    sequence: int | None
    expires_ns: int
    valid: bool = True
    in_use_until_ns: int = 0
    """The route carries data or was asked for. Routes that were only
    overheard (hellos, passing requests) are not in use."""
    precursors: set[int] = field(default_factory=set)
    """Neighbours that send over us; they must learn when the route breaks."""

    def add_precursor(self, neighbour: int) -> None:
        if len(self.precursors) < MAX_PRECURSORS:
            self.precursors.add(neighbour)


class RouteTable:
    def __init__(self, delete_period_ns: int) -> None:
        self._delete_period_ns = delete_period_ns
        self._routes: dict[int, Route] = {}
        self.evicted = 0
        self.changes = 0
        """Grows whenever a valid route appears, disappears or changes its next hop or length."""

    def __iter__(self) -> Iterator[Route]:
        return iter(self._routes.values())

    def get(self, destination: int) -> Route | None:
        """Returns the route, valid or not: an invalid one still has the last sequence number."""
        return self._routes.get(destination)

    def valid(self, destination: int, now_ns: int) -> Route | None:
        route = self._routes.get(destination)
        return route if route is not None and route.valid and route.expires_ns > now_ns else None

    def learn(
        self, destination: int, next_hop: int, hops: int, sequence: int | None, until_ns: int
    ) -> Route | None:
        """Returns the updated route; None if the known route is better and stays. In a full table the new
        route replaces routes that carry nothing and end soon.

        Without a sequence number it can only learn a neighbour, which was heard directly.
        """
        route = self._routes.get(destination)
        if route is None:
            if len(self._routes) >= MAX_ROUTES:
                self._make_room()
            self._routes[destination] = route = Route(destination, next_hop, hops, sequence, until_ns)
            self.changes += 1
            return route
        if not _better(route, next_hop, hops, sequence):
            return None
        if not route.valid or (route.next_hop, route.hops) != (next_hop, hops):
            self.changes += 1
        route.expires_ns = max(route.expires_ns, until_ns) if route.valid else until_ns
        route.next_hop, route.hops, route.valid = next_hop, hops, True
        if sequence is not None:
            route.sequence = sequence
        return route

    def _make_room(self) -> None:
        def credibility(route: Route) -> tuple[int, bool, bool, int]:
            neighbour = route.next_hop == route.destination
            return route.in_use_until_ns, neighbour, route.valid, route.expires_ns

        for route in nsmallest(len(self._routes) // _FORGOTTEN, self, credibility):
            del self._routes[route.destination]
            self.changes += route.valid
            self.evicted += 1

    def invalidate(self, route: Route, now_ns: int, reported: int | None = None) -> None:
        """Marks a route as invalid. ``reported``: the sequence number in the RERR, if one caused this."""
        if route.valid:
            route.valid = False
            self.changes += 1
        if route.sequence is not None:
            route.sequence = after(route.sequence)
            if reported is not None:
                route.sequence = newest(reported, route.sequence)
        else:
            route.sequence = reported
        route.in_use_until_ns = 0
        self.keep_in_memory(route, now_ns)

    def keep_in_memory(self, route: Route, now_ns: int) -> None:
        """Keeps an invalid route that somebody still sends over: forgetting
        its sequence number could create a loop."""
        route.expires_ns = now_ns + self._delete_period_ns

    def expire(self, now_ns: int) -> None:
        for route in [route for route in self if route.expires_ns <= now_ns]:
            if route.valid:
                self.invalidate(route, now_ns)
                route.precursors.clear()
            else:
                del self._routes[route.destination]


def _better(route: Route, next_hop: int, hops: int, sequence: int | None) -> bool:
    if sequence is None:
        return next_hop == route.destination
    if route.sequence is None or newer(sequence, route.sequence):
        return True
    if sequence != route.sequence:
        return False
    return not route.valid or hops < route.hops or (next_hop, hops) == (route.next_hop, route.hops)
