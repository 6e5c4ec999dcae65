"""Random waypoint: go straight to a uniformly drawn point at a uniformly drawn speed, pause, repeat.

The speed-decay trap: nodes start uniformly placed on fresh legs, and slow legs last longer, so over time more
and more nodes are found on slow ones. The mean speed falls from (low + high) / 2 towards
(high - low) / ln(high / low), and with ``low`` near zero it falls towards zero and takes hours to settle.
Meanwhile nodes gather in the middle. ``steady_state`` starts where all this ends.
"""

import random
from math import hypot

from orchestrator.mobility.arguments import check_area
from orchestrator.mobility.trace import Area, Path, Position, Span, Waypoint

MIN_SPEED = 0.001
"""Below this a leg may never end. The paper's 1 ± 1 m/s reaches zero; this floor is that of the ns-3 runs."""


def random_waypoint_path(rng: random.Random, area: Area, speed: Span, pause: Span, until: float) -> Path:
    """One node's path over [0, until] seconds; ``speed`` and ``pause`` are (low, high)."""
    check_area(area)
    path = [Waypoint(0.0, *uniform_position(rng, area))]
    roam(rng, path, area, speed, pause, until)
    return tuple(path)


def roam(
    rng: random.Random, path: list[Waypoint], area: Area, speed: Span, pause: Span, until: float
) -> None:
    """Extend ``path`` by whole legs and pauses until it covers ``until``."""
    low = max(speed[0], MIN_SPEED)
    high = max(speed[1], low)
    while path[-1].t < until:
        target = uniform_position(rng, area)
        travel(path, target, rng.uniform(low, high))
        rest(path, rng.uniform(max(pause[0], 0.0), max(pause[1], 0.0)))


def travel(path: list[Waypoint], target: Position, speed: float) -> None:
    t, x, y = path[-1]
    # A leg of no length still takes time, so that waypoints stay strictly ordered.
    path.append(Waypoint(t + max(hypot(target[0] - x, target[1] - y) / speed, 1e-9), *target))


def rest(path: list[Waypoint], seconds: float) -> None:
    if seconds > 0:
        t, x, y = path[-1]
        path.append(Waypoint(t + seconds, x, y))


def uniform_position(rng: random.Random, area: Area) -> Position:
    x = rng.uniform(0, area[0])
    return x, rng.uniform(0, area[1])
