"""Keeps events by type, place and time for a while, and finds or counts those of a region and a span of
time.

The plane is cut into square cells; each cell holds its events of a type in order, with their times in a
list of their own. Times only grow, so an event is appended, old ones leave at the front, and ``bisect``
finds a span in a few comparisons of floats in C. Cells that lie wholly inside a region are taken or counted
without a look at their events. A tree over places would have to be rebalanced as events come and go, in
Python.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator

from node_agent.apps.mcep.geometry import Box, Circle, Point, Region, bounds, contains
from node_agent.apps.mcep.model import Event, McepError

CELL_M = 100.0


class Cell:
    """Events of one type in one square, in order."""

    __slots__ = ("events", "times")

    def __init__(self) -> None:
        self.times: list[float] = []
        self.events: list[Event] = []

    def add(self, event: Event) -> None:
        times = self.times
        if not times or event.t > times[-1] or event.key > self.events[-1].key:
            times.append(event.t)
            self.events.append(event)
            return
        place = bisect_right(self.events, event.key, key=_key)
        self.times.insert(place, event.t)
        self.events.insert(place, event)

    def forget(self, before: float) -> int:
        gone = bisect_left(self.times, before)
        if gone:
            del self.times[:gone]
            del self.events[:gone]
        return gone


class Storage:
    """``ttl``: for how many seconds events of a type are kept, unless a query requires more.

    >>> storage = Storage(60.0)
    >>> storage.add(Event(1.0, 0, "car", "speed", Point(3, 4)))
    >>> storage.count("speed", [Circle(0, 0, 5)], since=0, before=2)
    1
    """

    def __init__(self, ttl: float, cell_m: float = CELL_M) -> None:
        if not ttl > 0 or not 0 < cell_m < math.inf:
            raise McepError(
                f"storage needs a time to keep events and a cell size above 0, not {ttl!r} and {cell_m!r}"
            )
        self._default_ttl, self._cell_m = ttl, cell_m
        self._ttl: dict[str, float] = {}
        self._cells: dict[str, dict[tuple[int, int], Cell]] = {}
        self._forgotten: dict[str, float] = {}
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def ttl(self, type: str) -> float:
        return self._ttl.get(type, self._default_ttl)

    def require(self, type: str, seconds: float) -> None:
        """Keeps events of a type for at least so long."""
        self._ttl[type] = max(self.ttl(type), seconds)

    def add(self, event: Event) -> None:
        """Events with a box as their place are found at its middle."""
        place = _middle(event)
        x, y = math.floor(place.x / self._cell_m), math.floor(place.y / self._cell_m)
        cells = self._cells.get(event.type)
        if cells is None:
            cells = self._cells[event.type] = {}
        cell = cells.get((x, y))
        if cell is None:
            cell = cells[x, y] = Cell()
        cell.add(event)
        self._size += 1

    def expire(self, now: float, needed_since: float = math.inf) -> None:
        """Forgets what is older than its time to live, unless a query is late and still needs it. Cheap to
        call often: looks at cells once per 1/16 of that time."""
        for type, cells in self._cells.items():
            before = min(now - self.ttl(type), needed_since)
            if before < self._forgotten.get(type, -math.inf) + self.ttl(type) / 16:
                continue
            self._forgotten[type] = before
            for place, cell in list(cells.items()):
                self._size -= cell.forget(before)
                if not cell.times:
                    del cells[place]

    def find(
        self, type: str, regions: Iterable[Region], since: float = -math.inf, before: float = math.inf
    ) -> list[Event]:
        """Events inside all of these regions with ``since <= t < before``, in order."""
        found: list[Event] = []
        inside = tuple(regions)
        for cell, whole in self._touched(type, inside):
            first, last = bisect_left(cell.times, since), bisect_left(cell.times, before)
            if whole:
                found += cell.events[first:last]
            else:
                found += [each for each in cell.events[first:last] if _is_inside(inside, each)]
        found.sort(key=_key)
        return found

    def count(
        self, type: str, regions: Iterable[Region], since: float = -math.inf, before: float = math.inf
    ) -> int:
        inside = tuple(regions)
        before = max(before, since)
        total = 0
        for cell, whole in self._touched(type, inside):
            first, last = bisect_left(cell.times, since), bisect_left(cell.times, before)
            if whole:
                total += last - first
            else:
                total += sum(1 for each in cell.events[first:last] if _is_inside(inside, each))
        return total

    def latest(self, type: str, regions: Iterable[Region], before: float, most: int) -> list[Event]:
        """The last events inside all of these regions before a time, the latest last; at most so many."""
        inside = tuple(regions)
        found: list[Event] = []
        for cell, whole in self._touched(type, inside):
            index = bisect_left(cell.times, before)
            taken = 0
            while index > 0 and taken < most:
                index -= 1
                if whole or _is_inside(inside, cell.events[index]):
                    found.append(cell.events[index])
                    taken += 1
        found.sort(key=_key)
        return found[-most:] if most else []

    def _touched(self, type: str, regions: tuple[Region, ...]) -> Iterator[tuple[Cell, bool]]:
        """Cells that can hold events of all regions, and whether they lie in all of them wholly."""
        cells = self._cells.get(type)
        if not cells:
            return
        side = self._cell_m
        boxes = [bounds(each) for each in regions]
        x0 = math.floor(max((each.x0 for each in boxes), default=-math.inf) / side) if boxes else 0
        y0 = math.floor(max(each.y0 for each in boxes) / side) if boxes else 0
        x1 = math.floor(min(each.x1 for each in boxes) / side) if boxes else -1
        y1 = math.floor(min(each.y1 for each in boxes) / side) if boxes else -1
        if boxes and (x1 < x0 or y1 < y0):
            return
        if not boxes or (x1 - x0 + 1) * (y1 - y0 + 1) > len(cells):
            for (x, y), cell in cells.items():
                if not boxes or (x0 <= x <= x1 and y0 <= y <= y1):
                    yield cell, all(_covers(each, x * side, y * side, side) for each in regions)
            return
        for x in range(x0, x1 + 1):
            for y in range(y0, y1 + 1):
                found = cells.get((x, y))
                if found is not None:
                    yield found, all(_covers(each, x * side, y * side, side) for each in regions)


def _covers(region: Region, x: float, y: float, side: float) -> bool:
    """Whether a square lies wholly inside. Says no for polygons, whose events are tested one by one."""
    match region:
        case Box(x0, y0, x1, y1):
            return x0 <= x and x + side <= x1 and y0 <= y and y + side <= y1
        case Circle(cx, cy, radius):
            dx, dy = max(cx - x, x + side - cx), max(cy - y, y + side - cy)
            return dx * dx + dy * dy <= radius * radius
        case _:
            return False


def _is_inside(regions: tuple[Region, ...], event: Event) -> bool:
    place = _middle(event)
    return all(contains(each, place) for each in regions)


def _middle(event: Event) -> Point:
    place = event.place
    return place if isinstance(place, Point) else Point((place.x0 + place.x1) / 2, (place.y0 + place.y1) / 2)


def _key(event: Event) -> tuple[float | int | str, ...]:
    return event[:3]
