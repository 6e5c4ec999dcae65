"""From a topology's mobility section to a trace."""

import random
from math import radians

from orchestrator.mobility.gauss_markov import gauss_markov_path
from orchestrator.mobility.group import group_paths
from orchestrator.mobility.random_walk import random_walk_path
from orchestrator.mobility.random_waypoint import random_waypoint_path
from orchestrator.mobility.static import scattered_path, static_path
from orchestrator.mobility.steady_state import steady_state_path
from orchestrator.mobility.trace import Area, Path, Trace
from orchestrator.spec.mobility import GaussMarkov, Group, RandomWalk, RandomWaypoint, Static
from orchestrator.spec.recorded import RecordedTrace
from orchestrator.spec.topology import Topology


def generate_trace(topology: Topology, seed: int, until: float) -> Trace:
    """Each node draws from a stream of its own, so that adding a node leaves the others' paths alone."""
    area: Area = (topology.area.width, topology.area.height)
    mobility = topology.mobility
    match mobility:
        case RecordedTrace():
            return mobility.read(topology.node_names, topology.area)
        case Static() if not mobility.scatter:
            return Trace({node: static_path(at) for node, at in topology.static_positions().items()})
        case Group():
            paths = group_paths(
                seed,
                mobility.members(topology.node_names),
                area,
                mobility.speeds,
                mobility.pauses,
                mobility.radius,
                mobility.member_speeds,
                until,
            )
            return Trace({node: paths[node] for node in topology.node_names})
        case _:
            return Trace(
                {
                    node: _path(mobility, random.Random(f"mobility/{seed}/{node}"), area, until)
                    for node in topology.node_names
                }
            )


def _path(
    mobility: RandomWaypoint | RandomWalk | GaussMarkov | Static,
    rng: random.Random,
    area: Area,
    until: float,
) -> Path:
    match mobility:
        case RandomWaypoint():
            path = steady_state_path if mobility.steady_state else random_waypoint_path
            return path(rng, area, mobility.speeds, mobility.pauses, until)
        case RandomWalk() if mobility.time is not None:
            return random_walk_path(rng, area, mobility.speeds, mobility.time, until, by="time")
        case RandomWalk():
            assert mobility.distance is not None, "one of both is given"
            return random_walk_path(rng, area, mobility.speeds, mobility.distance, until, by="distance")
        case GaussMarkov():
            return gauss_markov_path(
                rng,
                area,
                until,
                alpha=mobility.alpha,
                mean_speed=mobility.speed,
                speed_deviation=mobility.speed_deviation,
                max_speed=mobility.fastest,
                direction=None if mobility.direction is None else radians(mobility.direction),
                direction_deviation=radians(mobility.direction_deviation),
                step=mobility.step,
                border=mobility.border,
            )
        case Static():
            return scattered_path(rng, area)
