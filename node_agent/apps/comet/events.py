"""Primitive events: where they come from, and the instances that occur.

Times are seconds since the run began.
"""

import math

from msgspec import Struct


class EventSource(Struct, frozen=True):
    """A primitive event: its source node, its mean rate per second (Poisson), and when the source is active.

    ``length``: how long each instance lasts.

        EventSource("smoke", node="n04", rate=1 / 60)
    """

    name: str
    node: str
    rate: float
    length: float = 0.0
    begin: float = 0.0
    end: float = math.inf


class Instance(Struct, frozen=True, order=True):
    """One occurrence of a primitive event. ``event`` and ``number`` identify it."""

    start: float
    end: float
    event: str
    number: int


class Detection(Struct, frozen=True, order=True):
    """A complex event that occurred. Its constituents identify it: the same set is detected once.

    ``constituents``: in order of their times.
    """

    start: float
    end: float
    constituents: tuple[Instance, ...]


def detection_of(constituents: frozenset[Instance]) -> Detection:
    """Start is the earliest start of the constituents, end their latest end (paper, section II-B)."""
    ordered = tuple(sorted(constituents))
    return Detection(ordered[0].start, max(each.end for each in ordered), ordered)
