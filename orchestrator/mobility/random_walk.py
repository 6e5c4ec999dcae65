"""Random walk: a new direction and speed for each leg of fixed duration or length; the border reflects.

The density stays uniform (unlike random waypoint). With legs of fixed length, slow ones last longer and the
mean speed decays as in random waypoint; with legs of fixed duration it does not.
"""

import random
from math import cos, sin, tau
from typing import Literal

from orchestrator.mobility.arguments import check_area, check_at_least, check_span
from orchestrator.mobility.border import bounce
from orchestrator.mobility.random_waypoint import uniform_position
from orchestrator.mobility.trace import Area, Path, Span, Waypoint

SHORTEST_LEG = 0.001


def random_walk_path(
    rng: random.Random,
    area: Area,
    speed: Span,
    leg: float,
    until: float,
    *,
    by: Literal["time", "distance"] = "time",
) -> Path:
    """One node's path over [0, until]; ``leg`` is in seconds or, by distance, in metres."""
    check_area(area)
    check_span("speed", speed, above=0.0)
    check_at_least("leg", leg, SHORTEST_LEG)
    path = [Waypoint(0.0, *uniform_position(rng, area))]
    while path[-1].t < until:
        direction, v = rng.uniform(0, tau), rng.uniform(*speed)
        bounce(path, (v * cos(direction), v * sin(direction)), leg if by == "time" else leg / v, area)
    return tuple(path)
