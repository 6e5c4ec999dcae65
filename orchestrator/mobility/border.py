"""Reflects a straight leg at the borders of a rectangle, like light at a mirror."""

from math import inf

from orchestrator.model.trace import Area, Waypoint

Velocity = tuple[float, float]


def bounce(path: list[Waypoint], velocity: Velocity, seconds: float, area: Area) -> Velocity:
    """Extends ``path`` by a leg, with a waypoint at each border it meets. Returns the velocity at its end."""
    (t, x, y), (vx, vy) = path[-1], velocity
    width, height = area
    end = t + seconds
    while t < end:
        to_x, to_y = _time_to_wall(x, vx, width), _time_to_wall(y, vy, height)
        step = min(to_x, to_y, end - t)
        arrival = end if step == end - t else t + step
        x = min(max(x + vx * step, 0.0), width)
        y = min(max(y + vy * step, 0.0), height)
        if to_x == step:
            vx = -vx
        if to_y == step:
            vy = -vy
        if arrival > t:
            path.append(Waypoint(arrival, x, y))
        t = arrival
    return vx, vy


def _time_to_wall(at: float, velocity: float, side: float) -> float:
    if velocity == 0:
        return inf
    return max(((side if velocity > 0 else 0.0) - at) / velocity, 0.0)
