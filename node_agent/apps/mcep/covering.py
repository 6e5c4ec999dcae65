"""Whether shapes cover an area, each place once: polygons may be of any form.

The area is cut into slabs at every corner and at every crossing of two borders. Inside of a slab no border
ends and none cross, so the line through its middle tells all of it.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations, pairwise
from typing import NamedTuple

from node_agent.apps.mcep.geometry import Box, Point, Polygon

SLIVER_M = 1e-3
"""What is thinner than this does not count: corners are rounded."""

Edge = tuple[Point, Point]


class Fault(NamedTuple):
    """A place that nobody has, or that two have."""

    place: Point
    owners: tuple[str, ...]


def find_fault(shapes: Mapping[str, Box | Polygon], area: Box) -> Fault | None:
    """Returns the first place of the area that has not exactly one owner; None if each has one."""
    edges = {name: _edges(shape) for name, shape in shapes.items()}
    for low, high in pairwise(_levels([edge for own in edges.values() for edge in own], area)):
        if high - low <= SLIVER_M:
            continue
        y = (low + high) / 2
        spans = sorted((begin, end, name) for name, own in edges.items() for begin, end in _spans(own, y))
        if (found := _along(spans, area, y)) is not None:
            return found
    return None


def _along(spans: Sequence[tuple[float, float, str]], area: Box, y: float) -> Fault | None:
    """``spans``: from where to where the line at ``y`` is whose, in order."""
    reached, last = area.x0, ""
    for begin, end, name in [*spans, (area.x1, area.x1, "")]:
        if end < area.x0 or begin > area.x1:
            continue
        begin, end = max(begin, area.x0), min(end, area.x1)
        if begin - reached > SLIVER_M:
            return Fault(Point((reached + begin) / 2, y), ())
        if name and min(reached, end) - begin > SLIVER_M:
            return Fault(Point((begin + min(reached, end)) / 2, y), (last, name))
        if end > reached:
            reached, last = end, name
    return None


def _spans(edges: Sequence[Edge], y: float) -> list[tuple[float, float]]:
    """Where a line at ``y`` is inside, by the even-odd rule."""
    xs = sorted(a.x + (y - a.y) * (b.x - a.x) / (b.y - a.y) for a, b in edges if (a.y > y) != (b.y > y))
    return list(zip(xs[::2], xs[1::2], strict=True))


def _levels(edges: Sequence[Edge], area: Box) -> list[float]:
    levels = {area.y0, area.y1, *(point.y for edge in edges for point in edge)}
    for one, other in combinations(edges, 2):
        crossing = _crossing(one, other)
        if crossing is not None:
            levels.add(crossing)
    return sorted(y for y in levels if area.y0 <= y <= area.y1)


def _crossing(one: Edge, other: Edge) -> float | None:
    """The height at which two edges cross, if they do and are not parallel."""
    (ax, ay), (bx, by) = one
    (cx, cy), (dx, dy) = other
    turn = (bx - ax) * (dy - cy) - (by - ay) * (dx - cx)
    if not turn:
        return None
    along = ((cx - ax) * (dy - cy) - (cy - ay) * (dx - cx)) / turn
    across = ((cx - ax) * (by - ay) - (cy - ay) * (bx - ax)) / turn
    return ay + along * (by - ay) if 0 <= along <= 1 and 0 <= across <= 1 else None


def _edges(shape: Box | Polygon) -> list[Edge]:
    if isinstance(shape, Box):
        x0, y0, x1, y1 = shape.x0, shape.y0, shape.x1, shape.y1
        corners: tuple[Point, ...] = (Point(x0, y0), Point(x1, y0), Point(x1, y1), Point(x0, y1))
    else:
        corners = shape.corners
    return list(zip(corners, (*corners[1:], corners[0]), strict=True))
