"""Where nodes are: piecewise-linear paths, the common form of every mobility model and trace file."""

from bisect import bisect_right
from collections.abc import Mapping
from itertools import pairwise
from math import hypot
from typing import NamedTuple

Position = tuple[float, float]
Area = tuple[float, float]
"""Width and height in metres; positions lie in [0, width] × [0, height]."""
Span = tuple[float, float]
"""The lowest and the highest value that a model draws."""


class Waypoint(NamedTuple):
    """At ``t`` seconds into the run the node is at (x, y) metres."""

    t: float
    x: float
    y: float


class Sample(NamedTuple):
    """A vehicle at one moment. ``speed`` in m/s; ``lane``: empty where nobody knows of lanes."""

    t: float
    x: float
    y: float
    speed: float = 0.0
    lane: str = ""


Path = tuple[Waypoint, ...]
Drives = dict[str, list[Sample]]
"""By node or vehicle."""


class Trace:
    """One path per node. Between waypoints a node moves in a straight line; after the last it stays."""

    def __init__(self, paths: Mapping[str, Path]) -> None:
        self.paths = dict(paths)
        self._times = {node: [w.t for w in path] for node, path in self.paths.items()}

    def at(self, t: float) -> dict[str, Position]:
        return {node: self.position(node, t) for node in self.paths}

    def position(self, node: str, t: float) -> Position:
        path = self.paths[node]
        after = bisect_right(self._times[node], t)
        if after == 0:
            return path[0].x, path[0].y
        if after == len(path):
            return path[-1].x, path[-1].y
        return between(path[after - 1], path[after], t)

    def until(self, end: float) -> "Trace":
        """The same motion up to ``end`` and not beyond."""
        return Trace({node: self._cut(node, end) for node in self.paths})

    def _cut(self, node: str, end: float) -> Path:
        path = self.paths[node]
        if path[-1].t <= end:
            return path
        return (*(w for w in path if w.t < end), Waypoint(end, *self.position(node, end)))


def driven(path: Path) -> list[Sample]:
    """The samples of a path: each waypoint with the speed of the leg that begins there."""
    speeds = [
        hypot(after.x - before.x, after.y - before.y) / (after.t - before.t) if after.t > before.t else 0.0
        for before, after in pairwise(path)
    ]
    return [Sample(*waypoint, speed) for waypoint, speed in zip(path, [*speeds, 0.0], strict=True)]


def between(a: Waypoint, b: Waypoint, t: float) -> Position:
    """Where a node is at ``t`` on its straight way from ``a`` to ``b``."""
    share = (t - a.t) / (b.t - a.t)
    return a.x + (b.x - a.x) * share, a.y + (b.y - a.y) * share
