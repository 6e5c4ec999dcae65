"""Places and regions in metres: points, boxes, circles, polygons, and which points are inside.

Borders belong to boxes and circles; a polygon follows the even-odd rule, so a point on its border is inside
of exactly one of two polygons that share that border.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

CORNERS = 1000
"""The most corners of a polygon: each test of a point visits all of them."""


class Point(NamedTuple):
    x: float
    y: float


@dataclass(frozen=True, slots=True)
class Box:
    """From the corner (``x0``, ``y0``) to the corner (``x1``, ``y1``), both included."""

    x0: float
    y0: float
    x1: float
    y1: float


@dataclass(frozen=True, slots=True)
class Circle:
    x: float
    y: float
    radius: float


@dataclass(frozen=True, slots=True)
class Polygon:
    corners: tuple[Point, ...]


Region = Box | Circle | Polygon
Place = Point | Box
"""Where an event occurred: atomic events at a point, others in the box around what they were made of."""


def middle(place: Place) -> Point:
    """Of a point it is the point itself."""
    if isinstance(place, Point):
        return place
    return Point((place.x0 + place.x1) / 2, (place.y0 + place.y1) / 2)


def circles(radius: float) -> Callable[[Point], Region]:
    """Circles around places."""
    return lambda place: Circle(place.x, place.y, radius)


def squares(edge: float) -> Callable[[Point], Box]:
    """Squares around places."""
    half = edge / 2
    return lambda place: Box(place.x - half, place.y - half, place.x + half, place.y + half)


def contains(region: Region, point: Point) -> bool:
    x, y = point
    match region:
        case Box(x0, y0, x1, y1):
            return x0 <= x <= x1 and y0 <= y <= y1
        case Circle(cx, cy, radius):
            return (x - cx) ** 2 + (y - cy) ** 2 <= radius * radius
        case Polygon(corners):
            return _is_within(corners, x, y)


def _is_within(corners: tuple[Point, ...], x: float, y: float) -> bool:
    """Whether a ray to the right crosses the border an odd number of times."""
    inside = False
    ax, ay = corners[-1]
    for bx, by in corners:
        if (ay > y) != (by > y) and x < ax + (y - ay) * (bx - ax) / (by - ay):
            inside = not inside
        ax, ay = bx, by
    return inside


def bounds(region: Region) -> Box:
    """The smallest box around a region."""
    match region:
        case Box():
            return region
        case Circle(x, y, radius):
            return Box(x - radius, y - radius, x + radius, y + radius)
        case Polygon(corners):
            xs, ys = [each.x for each in corners], [each.y for each in corners]
            return Box(min(xs), min(ys), max(xs), max(ys))


def enclosing(places: Iterable[Place]) -> Place | None:
    """The smallest place that holds all; a point if they are one point; None if there are none."""
    x0 = y0 = math.inf
    x1 = y1 = -math.inf
    for place in places:
        if isinstance(place, Point):
            x0, y0 = min(x0, place.x), min(y0, place.y)
            x1, y1 = max(x1, place.x), max(y1, place.y)
        else:
            x0, y0 = min(x0, place.x0), min(y0, place.y0)
            x1, y1 = max(x1, place.x1), max(y1, place.y1)
    if x0 > x1:
        return None
    return Point(x0, y0) if x0 == x1 and y0 == y1 else Box(x0, y0, x1, y1)


def distance(one: Point, other: Point) -> float:
    return math.hypot(one.x - other.x, one.y - other.y)


def region_problem(region: object) -> str | None:
    """Why something cannot be a region; None if it can."""
    match region:
        case Box(x0, y0, x1, y1):
            if not _are_finite(x0, y0, x1, y1):
                return "a box needs four finite numbers"
            return None if x0 <= x1 and y0 <= y1 else "a box must not end before it begins"
        case Circle(x, y, radius):
            if not _are_finite(x, y, radius):
                return "a circle needs three finite numbers"
            return None if radius > 0 else f"a circle needs a radius above 0, not {radius!r}"
        case Polygon(corners):
            if not isinstance(corners, tuple) or not 3 <= len(corners) <= CORNERS:
                return f"a polygon needs 3 to {CORNERS} corners"
            if not all(isinstance(each, Point) and _are_finite(*each) for each in corners):
                return "the corners of a polygon are points with finite numbers"
            return None
        case _:
            return f"a region is a Box, a Circle or a Polygon, not {type(region).__name__}"


def _are_finite(*numbers: object) -> bool:
    return all(
        isinstance(each, int | float) and not isinstance(each, bool) and math.isfinite(each)
        for each in numbers
    )
