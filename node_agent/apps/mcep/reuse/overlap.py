"""Areas of regions, and of what two regions have in common, in square metres.

Boxes, and circles with circles, are exact. Everything else is cut into ``STRIPS`` horizontal strips, and
each strip counts with the length of its middle line inside both regions.
"""

import math

from node_agent.apps.mcep.geometry import Box, Circle, Polygon, Region, bounds

STRIPS = 512
Spans = list[tuple[float, float]]


def area(region: Region) -> float:
    match region:
        case Box(x0, y0, x1, y1):
            return (x1 - x0) * (y1 - y0)
        case Circle(_, _, radius):
            return math.pi * radius * radius
        case Polygon():
            return _by_strips(region, region)


def common_area(one: Region, other: Region) -> float:
    """The area of what lies inside both.

    >>> common_area(Box(0, 0, 2, 2), Box(1, 1, 5, 5))
    1
    """
    match one, other:
        case Box(), Box():
            width = min(one.x1, other.x1) - max(one.x0, other.x0)
            height = min(one.y1, other.y1) - max(one.y0, other.y0)
            return width * height if width > 0 and height > 0 else 0.0
        case Circle(), Circle():
            return _lens(one, other)
        case _:
            return _by_strips(one, other)


def _lens(one: Circle, other: Circle) -> float:
    apart = math.hypot(one.x - other.x, one.y - other.y)
    small, large = sorted((one.radius, other.radius))
    if apart >= small + large:
        return 0.0
    if apart <= large - small:
        return math.pi * small * small
    to_small = (apart**2 + small**2 - large**2) / (2 * apart)
    to_large = apart - to_small
    return sum(
        radius**2 * math.acos(max(-1.0, min(1.0, to / radius))) - to * math.sqrt(max(0.0, radius**2 - to**2))
        for radius, to in ((small, to_small), (large, to_large))
    )


def _by_strips(one: Region, other: Region) -> float:
    here, there = bounds(one), bounds(other)
    low, high = max(here.y0, there.y0), min(here.y1, there.y1)
    if low >= high:
        return 0.0
    step = (high - low) / STRIPS
    found = 0.0
    for strip in range(STRIPS):
        y = low + (strip + 0.5) * step
        found += step * _common_length(_spans(one, y), _spans(other, y))
    return found


def _spans(region: Region, y: float) -> Spans:
    """The parts of a horizontal line that lie inside, from left to right."""
    match region:
        case Box(x0, y0, x1, y1):
            return [(x0, x1)] if y0 <= y <= y1 else []
        case Circle(cx, cy, radius):
            half = math.sqrt(max(0.0, radius * radius - (y - cy) ** 2))
            return [(cx - half, cx + half)] if half else []
        case Polygon(corners):
            crossings = []
            ax, ay = corners[-1]
            for bx, by in corners:
                if (ay > y) != (by > y):
                    crossings.append(ax + (y - ay) * (bx - ax) / (by - ay))
                ax, ay = bx, by
            crossings.sort()
            return list(zip(crossings[::2], crossings[1::2], strict=True))


def _common_length(one: Spans, other: Spans) -> float:
    return sum(max(0.0, min(b, d) - max(a, c)) for a, b in one for c, d in other)
