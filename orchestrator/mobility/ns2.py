"""Reads and writes ns-2 movement files, as used by setdest, BonnMotion's NSFile, SUMO and CORE.

``$node_(0) set X_ 1.0`` places a node at the start; ``$ns_ at 2.0 "$node_(0) setdest x y speed"`` makes it
move. As in ns-2, a new setdest interrupts the current leg, and a node stops at its destination. The file's
nodes, in ascending order of their numbers, are the topology's nodes. BonnMotion's NSFile shifts all positions
by 10 m unless it is run with -b.

A written trace reads back as the same motion within 1 µs at each time: arrivals are recomputed from speeds,
and an arrival within SNAP_S of the next setdest is set to its time.
"""

import re
from collections.abc import Sequence
from itertools import pairwise
from math import hypot, isfinite
from pathlib import Path as FilePath
from typing import NamedTuple

from orchestrator.errors import BadInput
from orchestrator.mobility.trace_file import Place, TraceError, named, read_text, write_text
from orchestrator.model.trace import Area, Path, Position, Trace, Waypoint, between

SNAP_S = 1e-6
STOP_M = 0.01
"""Generators write a pause as a setdest without speed to a point this near; a farther one is an error."""

_NODE = r"\$node_\((\d{1,9})\)"
_INITIAL = re.compile(rf"{_NODE}\s+set\s+([XYZ])_\s+(\S+)")
_SETDEST = re.compile(rf'\$ns_?\s+at\s+(\S+)\s+"\s*{_NODE}\s+setdest\s+(\S+)\s+(\S+)\s+([^\s"]+)\s*"')
# Hop counts that setdest writes for the simulator, and Tcl variables: they move no node.
_IGNORED = re.compile(r'(\$ns_?\s+at\s+\S+\s+")?\$god_\s.*|set\s.*')


class SetDest(NamedTuple):
    place: Place
    t: float
    target: Position
    speed: float


def read_ns2(file: FilePath, nodes: Sequence[str], area: Area | None = None) -> Trace:
    return named(parse_ns2(read_text(file), str(file), area), nodes, str(file))


def write_ns2(file: FilePath, trace: Trace) -> None:
    write_text(file, format_ns2(trace))


def format_ns2(trace: Trace) -> str:
    """Returns the initial positions, then every leg in order of time; a pause has no setdest."""
    lines = []
    legs: list[tuple[float, int, str]] = []
    for number, (node, path) in enumerate(trace.paths.items()):
        lines.append(f"# {node}")
        for axis, value in ("X", path[0].x), ("Y", path[0].y), ("Z", 0.0):
            lines.append(f"$node_({number}) set {axis}_ {float(value)!r}")
        for a, b in pairwise(path):
            distance = hypot(b.x - a.x, b.y - a.y)
            if distance == 0:
                continue
            if b.t <= a.t:
                raise BadInput(f"{node} jumps at {a.t:g} s, which an ns-2 file cannot say")
            if speed := distance / (b.t - a.t):
                target = f"{float(b.x)!r} {float(b.y)!r} {speed!r}"
                legs.append((a.t, number, f'$ns_ at {float(a.t)!r} "$node_({number}) setdest {target}"'))
    return "\n".join([*lines, *(line for _, _, line in sorted(legs)), ""])


def parse_ns2(text: str, file: str, area: Area | None = None) -> list[Path]:
    """Returns the paths of the file's nodes in ascending order of their numbers."""
    initial: dict[int, dict[str, tuple[Place, str]]] = {}
    commands: dict[int, list[SetDest]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        place = Place(file, number)
        content = line.partition("#")[0].strip().rstrip("; \t")
        if match := _INITIAL.fullmatch(content):
            node, axis, value = match.groups()
            axes = initial.setdefault(int(node), {})
            if axis in axes:
                raise place.error(f"{axis}_ of node {node} is set a second time")
            axes[axis] = place, value
        elif match := _SETDEST.fullmatch(content):
            t, node, x, y, speed = match.groups()
            commands.setdefault(int(node), []).append(
                SetDest(
                    place,
                    place.number(t, "time"),
                    place.position(x, y, area),
                    place.number(speed, "speed"),
                )
            )
        elif content and not _IGNORED.fullmatch(content):
            raise place.error(f"neither an initial position nor a setdest: {content[:60]!r}")
    for node, sent in sorted(commands.items()):
        if node not in initial:
            raise sent[0].place.error(f"node {node} moves but has no initial position")
    starts = {node: _start(node, axes, file, area) for node, axes in sorted(initial.items())}
    if len({axes["Z"][0].number(axes["Z"][1], "Z_") for axes in initial.values() if "Z" in axes}) > 1:
        raise TraceError(file, None, "nodes differ in height; only movement in a plane is supported")
    return [_path(start, commands.get(node, [])) for node, start in starts.items()]


def _start(node: int, axes: dict[str, tuple[Place, str]], file: str, area: Area | None) -> Position:
    for axis in "XY":
        if axis not in axes:
            raise TraceError(file, None, f"node {node} has no initial {axis}_")
    (_, x), (place, y) = axes["X"], axes["Y"]
    axes["X"][0].number(x, "X_")
    return place.position(x, y, area)


def _path(start: Position, commands: Sequence[SetDest]) -> Path:
    path = [Waypoint(0.0, *start)]
    arrival: Waypoint | None = None
    for place, t, target, speed in commands:
        if t < 0:
            raise place.error(f"time is negative: {t!r} s")
        if t < path[-1].t:
            raise place.error(f"time runs backwards: {t!r} s after {path[-1].t!r} s")
        path += _until(t, path[-1], arrival)
        distance = hypot(target[0] - path[-1].x, target[1] - path[-1].y)
        if speed > 0 and distance > 0:
            arrival = Waypoint(t + distance / speed, *target)
            if not isfinite(arrival.t):
                raise place.error(f"speed {speed:g} m/s: the destination is never reached")
        elif distance > STOP_M:
            raise place.error(f"speed {speed:g} m/s, but the destination is {distance:g} m away")
        else:
            arrival = None
    return tuple(path if arrival is None else [*path, arrival])


def _until(t: float, last: Waypoint, arrival: Waypoint | None) -> list[Waypoint]:
    """Extends the path from ``last`` to the time ``t`` of the next command."""
    if t == last.t:
        return []
    if arrival is None:
        return [last._replace(t=t)]
    if t < arrival.t - SNAP_S:
        return [Waypoint(t, *between(last, arrival, t))]
    if t <= arrival.t + SNAP_S:
        return [arrival._replace(t=t)]
    return [arrival, arrival._replace(t=t)]
