"""Random waypoint that starts in its stationary distribution: no warm-up, no decay of the mean speed.

The state at time 0 is drawn as if a running process were observed at a random time (Navidi and Camp 2004; Le
Boudec and Vojnović 2005, by Palm calculus). A node pauses or moves with probability proportional to the time
spent so. A leg is drawn in proportion to its length, its speed in proportion to 1/speed, and the node is
anywhere on it. A pause is drawn in proportion to its length, and any part of it is left.
"""

import random
from math import hypot, log, sqrt

from orchestrator.mobility.arguments import check_area, check_span
from orchestrator.mobility.legs import rest, roam, travel, uniform_position
from orchestrator.model.trace import Area, Path, Position, Span, Waypoint


def steady_state_path(rng: random.Random, area: Area, speed: Span, pause: Span, until: float) -> Path:
    """Returns one node's path over [0, until] seconds.

    The lowest speed must be above zero: otherwise every node would in the end be on a leg that never ends,
    and there is no stationary distribution.
    """
    check_area(area)
    check_span("speed", speed, above=0.0)
    check_span("pause", pause)
    if rng.random() < pausing_share(area, speed, pause):
        path = [Waypoint(0.0, *uniform_position(rng, area))]
        found = sqrt(rng.uniform(pause[0] ** 2, pause[1] ** 2))
        rest(path, found * rng.random())
    else:
        start, target = _leg_by_length(rng, area)
        behind = rng.random()
        here = start[0] + (target[0] - start[0]) * behind, start[1] + (target[1] - start[1]) * behind
        path = [Waypoint(0.0, *here)]
        travel(path, target, speed[0] * (speed[1] / speed[0]) ** rng.random())
        rest(path, rng.uniform(*pause))
    roam(rng, path, area, speed, pause, until)
    return tuple(path)


def stationary_mean_speed(area: Area, speed: Span, pause: Span) -> float:
    """Returns the mean speed over time, including pauses: the length of a leg over the time of a leg and a
    pause.
    """
    leg = mean_leg(area)
    return leg / (leg * _mean_slowness(speed) + sum(pause) / 2)


def pausing_share(area: Area, speed: Span, pause: Span) -> float:
    """Returns the share of time that a node pauses."""
    mean_pause = sum(pause) / 2
    return mean_pause / (mean_pause + mean_leg(area) * _mean_slowness(speed))


def mean_leg(area: Area) -> float:
    """Returns the mean distance of two uniform points in a rectangle: 0.5214 of the side in a square."""
    a, b = area
    d = hypot(a, b)
    edges = a**3 / b**2 + b**3 / a**2 + d * (3 - (a / b) ** 2 - (b / a) ** 2)
    return (edges + 2.5 * (b**2 / a * log((a + d) / b) + a**2 / b * log((b + d) / a))) / 15


def _mean_slowness(speed: Span) -> float:
    """Returns the mean of 1/speed for a uniform speed, in seconds per metre."""
    low, high = speed
    return 1 / low if low == high else log(high / low) / (high - low)


def _leg_by_length(rng: random.Random, area: Area) -> tuple[Position, Position]:
    longest = hypot(*area)
    while True:
        start, target = uniform_position(rng, area), uniform_position(rng, area)
        length = hypot(target[0] - start[0], target[1] - start[1])
        if rng.random() * longest < length:
            return start, target
