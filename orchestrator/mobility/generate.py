"""Generates the trace of a topology by its mobility model, and checks it if the model is not one of ours."""

from math import isfinite

from node_agent.extensions import ExtensionError
from orchestrator.errors import BadInput
from orchestrator.mobility.trace_file import BORDER_ROUNDING_M
from orchestrator.model.trace import Path, Trace
from orchestrator.spec.foreign_calls import called
from orchestrator.spec.mobility import MOBILITY_MODELS, MobilityModel
from orchestrator.spec.registered import file_of, place_of
from orchestrator.spec.topology import Topology


def generate_trace(topology: Topology, seed: int, until: float) -> Trace:
    """Returns the trace; the same seed gives the same one. Raises BadInput if a user's model fails or returns
    nonsense.
    """
    model, nodes, area = topology.mobility, topology.node_names, topology.area
    if MOBILITY_MODELS.is_builtin(model.model):
        return model.trace(nodes, area, seed, until)
    try:
        return called(
            f"mobility model {model.model}",
            file_of(model.model, type(model)),
            # Reading a path may run the user's code as well.
            lambda: _checked(model.trace(nodes, area, seed, until), model, topology),
        )
    except ExtensionError as error:
        raise BadInput(str(error)) from error


def _checked(trace: object, model: MobilityModel, topology: Topology) -> Trace:
    """Returns ``trace`` if it has one usable path for each node, in the order of the nodes."""

    def refused(reason: str) -> BadInput:
        return BadInput(f"{place_of(type(model).trace)}: trace() of the mobility model {reason}")

    if not isinstance(trace, Trace):
        raise refused(f"returned {type(trace).__name__} and not a Trace")
    missing = [node for node in topology.node_names if node not in trace.paths]
    if missing:
        raise refused(f"returned no path for {missing[0]}")
    for node in topology.node_names:
        if problem := _problem(trace.paths[node], topology.area):
            raise refused(f"returned a path of {node} that {problem}")
    return Trace({node: trace.paths[node] for node in topology.node_names})


def _problem(path: Path, area: tuple[float, float]) -> str:
    try:
        rows = [tuple(map(float, waypoint)) for waypoint in path]
    except (TypeError, ValueError):
        return "is not a sequence of waypoints (t, x, y)"
    if not rows:
        return "is empty"
    if any(len(row) != 3 for row in rows):
        return "has a waypoint that is not (t, x, y)"
    before = -1.0
    for t, x, y in rows:
        if not all(map(isfinite, (t, x, y))):
            return f"has a number that is not finite: ({t}, {x}, {y})"
        if t <= before:
            return f"goes back in time: {t:g} s after {before:g} s"
        if not all(
            -BORDER_ROUNDING_M <= at <= side + BORDER_ROUNDING_M
            for at, side in zip((x, y), area, strict=True)
        ):
            return f"leaves the area: ({x:g}, {y:g}) at {t:g} s"
        before = t
    return ""
