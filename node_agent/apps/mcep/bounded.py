"""How large what a node says may be: places, numbers and attributes of events."""

from collections.abc import Mapping

from node_agent.apps.mcep.geometry import Point, Region, bounds
from node_agent.apps.mcep.model import Value

FAR_M = 1e8
FAR_VALUE = 1e12
"""No number of an event is larger, so operators can add some of them up."""
MOST_ATTRIBUTES, MOST_TEXT = 32, 4000
"""Of an event: attributes, and characters of them together. Brokers keep events for a while."""


def is_near(place: object) -> bool:
    return isinstance(place, Point) and abs(place.x) <= FAR_M and abs(place.y) <= FAR_M


def is_near_region(region: Region) -> bool:
    box = bounds(region)
    return max(abs(box.x0), abs(box.y0), abs(box.x1), abs(box.y1)) <= 2 * FAR_M


def are_bounded(attributes: Mapping[str, Value]) -> bool:
    sizes = (len(name) + (len(value) if isinstance(value, str) else 8) for name, value in attributes.items())
    numbers = (value for value in attributes.values() if not isinstance(value, str))
    return (
        len(attributes) <= MOST_ATTRIBUTES
        and sum(sizes) <= MOST_TEXT
        and all(-FAR_VALUE <= each <= FAR_VALUE for each in numbers)
    )
