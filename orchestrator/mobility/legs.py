"""Builds paths from points drawn in an area, legs to them, and pauses between legs."""

import random
from math import hypot

from orchestrator.model.trace import Area, Position, Span, Waypoint

MIN_SPEED = 0.001
"""At a lower speed a leg may never end.
The paper's 1 ± 1 m/s reaches zero; the ns-3 runs used this minimum.
"""


def roam(
    rng: random.Random, path: list[Waypoint], area: Area, speed: Span, pause: Span, until: float
) -> None:
    """Extends ``path`` by whole legs and pauses until it covers ``until``."""
    low = max(speed[0], MIN_SPEED)
    high = max(speed[1], low)
    while path[-1].t < until:
        target = uniform_position(rng, area)
        travel(path, target, rng.uniform(low, high))
        rest(path, rng.uniform(max(pause[0], 0.0), max(pause[1], 0.0)))


def travel(path: list[Waypoint], target: Position, speed: float) -> None:
    t, x, y = path[-1]
    # A leg of length zero still takes time, so that the times of waypoints strictly increase.
    path.append(Waypoint(t + max(hypot(target[0] - x, target[1] - y) / speed, 1e-9), *target))


def rest(path: list[Waypoint], seconds: float) -> None:
    if seconds > 0:
        t, x, y = path[-1]
        path.append(Waypoint(t + seconds, x, y))


def uniform_position(rng: random.Random, area: Area) -> Position:
    x = rng.uniform(0, area[0])
    return x, rng.uniform(0, area[1])
