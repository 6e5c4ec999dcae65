"""Reads and writes BonnMotion scenarios: NAME.movements or NAME.movements.gz with one line of ``t x y …`` per
node, and NAME.params beside it. Written numbers read back exactly; a written trace reads back equal.

Rove's nodes move in a plane: a three-dimensional scenario is read if all its nodes keep the same height.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path as FilePath

from orchestrator.mobility.trace_file import Place, TraceError, named, read_text, write_text
from orchestrator.model.trace import Area, Path, Trace, Waypoint


@dataclass(frozen=True)
class BonnMotionParams:
    """What NAME.params says about the movements; None: it says nothing."""

    area: Area | None = None
    duration: float | None = None
    nodes: int | None = None
    three_dimensional: bool = False


def read_bonnmotion(file: FilePath, nodes: Sequence[str], area: Area | None = None) -> Trace:
    """Returns the movements of ``nodes``, checked against ``area`` and against the .params if
    there is one.
    """
    beside = params_file(file)
    params = parse_params(read_text(beside), str(beside)) if beside.exists() else BonnMotionParams()
    paths = parse_movements(read_text(file), str(file), area, three_dimensional=params.three_dimensional)
    if params.nodes is not None and params.nodes != len(paths):
        raise TraceError(str(file), None, f"moves {len(paths)} nodes, but {beside.name} says {params.nodes}")
    return named(paths, nodes, str(file))


def write_bonnmotion(file: FilePath, trace: Trace, area: Area, duration: float) -> None:
    """Writes movements (compressed if ``file`` ends in .gz) and the .params beside them."""
    write_text(file, format_movements(trace))
    params = f"""\
model=Rove
ignore=0.0
x={float(area[0])!r}
y={float(area[1])!r}
duration={float(duration)!r}
nn={len(trace.paths)}
circular=false
J=2D
"""
    write_text(params_file(file), params)


def params_file(movements: FilePath) -> FilePath:
    return movements.with_name(movements.name.removesuffix(".gz").removesuffix(".movements") + ".params")


def format_movements(trace: Trace) -> str:
    return "".join(
        " ".join(f"{t!r} {x!r} {y!r}" for t, x, y in path) + "\n"
        for path in ([Waypoint(*map(float, w)) for w in path] for path in trace.paths.values())
    )


def parse_movements(
    text: str, file: str, area: Area | None = None, *, three_dimensional: bool = False
) -> list[Path]:
    """Returns one path for each line that is neither blank nor a comment."""
    width = 4 if three_dimensional else 3
    paths = []
    heights: set[float] = set()
    for place, line in _lines(text, file):
        tokens = line.split()
        if len(tokens) % width:
            form = "t x y z" if three_dimensional else "t x y"
            raise place.error(f"{len(tokens)} numbers do not divide into waypoints of {form}")
        waypoints: list[Waypoint] = []
        for i in range(0, len(tokens), width):
            t = place.number(tokens[i], "time")
            waypoint = Waypoint(t, *place.position(tokens[i + 1], tokens[i + 2], area))
            if three_dimensional:
                heights.add(place.number(tokens[i + 3], "z"))
            if _is_next(waypoint, waypoints, place):
                waypoints.append(waypoint)
        paths.append(tuple(waypoints))
    if len(heights) > 1:
        raise TraceError(file, None, "nodes change their height; only movement in a plane is supported")
    return paths


def _is_next(waypoint: Waypoint, before: list[Waypoint], place: Place) -> bool:
    """Says whether a waypoint is new: BonnMotion repeats some, and those are left out."""
    if not before:
        if waypoint.t < 0:
            raise place.error(f"time is negative: {waypoint.t:g} s")
        return True
    last = before[-1]
    if waypoint.t < last.t:
        raise place.error(f"time runs backwards: {waypoint.t!r} s after {last.t!r} s")
    if waypoint.t == last.t and waypoint != last:
        raise place.error(f"the node is at two places at {waypoint.t!r} s")
    return waypoint.t > last.t


def parse_params(text: str, file: str) -> BonnMotionParams:
    """Parses ``key=value`` lines; ignores keys of the generator that do not concern the movements."""
    values: dict[str, float] = {}
    three_dimensional = False
    for place, line in _lines(text, file):
        key, equals, value = line.partition("=")
        if not equals:
            raise place.error(f"not a line of key=value: {line[:60]!r}")
        if key in ("x", "y", "duration", "nn"):
            values[key] = place.number(value, key)
        elif key == "J":
            three_dimensional = value.strip().upper() == "3D"
        elif key == "model" and value.strip() == "DisasterArea":
            raise place.error("DisasterArea scenarios, with a status in each waypoint, are not supported")
    return BonnMotionParams(
        area=(values["x"], values["y"]) if "x" in values and "y" in values else None,
        duration=values.get("duration"),
        nodes=int(values["nn"]) if "nn" in values else None,
        three_dimensional=three_dimensional,
    )


def _lines(text: str, file: str) -> Iterator[tuple[Place, str]]:
    for number, line in enumerate(text.splitlines(), 1):
        content = line.strip()
        if content and not content.startswith("#"):
            yield Place(file, number), content
