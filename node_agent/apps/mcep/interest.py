"""When the interest switches: always, after a time, after a distance, or when quality falls (Alg. 3.4,
3.5)."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from node_agent.apps.mcep.geometry import Point, Region, distance
from node_agent.apps.mcep.model import McepError, Quality, ratio

CountEvents = Callable[[Iterable[Region], float, float], int]
"""How many atomic events of the query lie inside all of these regions, since one time and before
another."""


@dataclass(frozen=True, slots=True)
class Always:
    pass


@dataclass(frozen=True, slots=True)
class Timed:
    """More than so many seconds after the last switch."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Spatial:
    """More than so many metres from the place of the last switch."""

    metres: float


@dataclass(frozen=True, slots=True)
class QualityAware:
    """Once precision or recall over the last ``look_back`` seconds is not above ``least``."""

    least: Quality
    look_back: float


Condition = Always | Timed | Spatial | QualityAware


@dataclass(frozen=True, slots=True)
class Switched:
    """The last switch: where the focal object was, when, and the region that is processed since."""

    place: Point
    t: float
    region: Region


def check_condition(condition: Condition) -> None:
    """Raises ``McepError`` for conditions that have no meaning."""
    match condition:
        case Timed(amount) | Spatial(amount):
            if not 0 <= amount < math.inf:
                raise McepError(f"a switch needs a distance of 0 or more in time or space, not {amount!r}")
        case QualityAware(least, look_back):
            if not (0 <= least.precision <= 1 and 0 <= least.recall <= 1 and 0 < look_back < math.inf):
                raise McepError(
                    "precision and recall are between 0 and 1, and the time to look back is above 0 s; "
                    f"not {least.precision!r}, {least.recall!r} and {look_back!r}"
                )


def must_switch(
    condition: Condition, last: Switched, place: Point, t: float, wanted: Region, count: CountEvents
) -> bool:
    """Whether an object that is at a place now, and wants a region, must have its interest switched."""
    match condition:
        case Always():
            return True
        case Timed(seconds):
            return last.t + seconds < t
        case Spatial(metres):
            return distance(last.place, place) > metres
        case QualityAware(least, look_back):
            found = recent_quality(last.region, wanted, t - look_back, t, count)
            return found.recall <= least.recall or found.precision <= least.precision


def recent_quality(
    processed: Region, wanted: Region, since: float, before: float, count: CountEvents
) -> Quality:
    """By three counts; nothing is streamed."""
    new, old = count([wanted], since, before), count([processed], since, before)
    both = count([processed, wanted], since, before)
    return Quality(ratio(both, old, new), ratio(both, new, old))


def overlap_quality(radius: float, apart: float) -> float:
    """Precision and recall of two equal circles whose centres are ``apart``, for uniform events (3.4,
    3.5)."""
    if apart >= 2 * radius:
        return 0.0
    lens = 2 * radius**2 * math.acos(apart / (2 * radius)) - apart / 2 * math.sqrt(4 * radius**2 - apart**2)
    return lens / (math.pi * radius**2)


def safe_distance(radius: float, quality: float) -> float:
    """How far a circle may move with its quality above this: a lower bound in closed form (3.6, 3.7)."""
    return 2 * (radius - math.sqrt(quality * radius**2))


def exact_distance(radius: float, quality: float) -> float:
    """The distance at which two circles have just this quality, by bisection."""
    low, high = 0.0, 2 * radius
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if overlap_quality(radius, middle) > quality else (low, middle)
    return (low + high) / 2
