"""Reference-point group mobility (Hong et al. 1999): groups follow their leaders, members roam around them.

A group's first node leads by random waypoint. Each other member moves by random waypoint in a disc around
the leader; its path is the sum of both, which is again piecewise linear. Leaders keep a radius away from the
border, so that members stay inside the area without being pushed.
"""

import random
from collections.abc import Sequence
from math import cos, sin, sqrt, tau

from orchestrator.errors import BadInput
from orchestrator.mobility.arguments import check_area, check_at_least, check_span
from orchestrator.mobility.random_waypoint import MIN_SPEED, random_waypoint_path, travel
from orchestrator.mobility.trace import Area, Path, Position, Span, Trace, Waypoint

SMALLEST_RADIUS_M = 0.001


def group_paths(
    seed: int,
    groups: Sequence[Sequence[str]],
    area: Area,
    speed: Span,
    pause: Span,
    radius: float,
    member_speed: Span,
    until: float,
) -> dict[str, Path]:
    """All nodes' paths over [0, until]; leaders move at ``speed``, members at ``member_speed`` beside."""
    paths: dict[str, Path] = {}
    for leader, *members in filter(None, groups):
        lead = leader_path(random.Random(f"mobility/{seed}/{leader}"), area, speed, pause, radius, until)
        paths[leader] = lead
        for member in members:
            rng = random.Random(f"mobility/{seed}/{member}")
            paths[member] = member_path(rng, lead, radius, member_speed, until)
    return paths


def leader_path(
    rng: random.Random, area: Area, speed: Span, pause: Span, radius: float, until: float
) -> Path:
    check_area(area)
    check_at_least("group radius", radius, SMALLEST_RADIUS_M)
    if 2 * radius >= min(area):
        raise BadInput(f"group radius {radius:g} m: a group does not fit into {area[0]:g} m × {area[1]:g} m")
    inner = area[0] - 2 * radius, area[1] - 2 * radius
    path = random_waypoint_path(rng, inner, speed, pause, until)
    return tuple(Waypoint(t, x + radius, y + radius) for t, x, y in path)


def member_path(rng: random.Random, leader: Path, radius: float, speed: Span, until: float) -> Path:
    check_at_least("group radius", radius, SMALLEST_RADIUS_M)
    check_span("member speed", speed, above=0.0)
    offset = [Waypoint(0.0, *_in_disc(rng, radius))]
    while offset[-1].t < until:
        travel(offset, _in_disc(rng, radius), rng.uniform(max(speed[0], MIN_SPEED), speed[1]))
    return _sum(leader, tuple(offset), until)


def _in_disc(rng: random.Random, radius: float) -> Position:
    # A hair inside, so that rounding in the sum never carries a member over the border of the area.
    r, angle = (1 - 1e-9) * radius * sqrt(rng.random()), rng.uniform(0, tau)
    return r * cos(angle), r * sin(angle)


def _sum(a: Path, b: Path, until: float) -> Path:
    both = Trace({"a": a, "b": b})
    inner = {w.t for path in (a, b) for w in path if w.t < until}
    times = [*sorted(inner), until] if until > 0 else [0.0]
    return tuple(
        Waypoint(t, ax + bx, ay + by)
        for t, (ax, ay), (bx, by) in ((t, both.position("a", t), both.position("b", t)) for t in times)
    )
