"""From a topology's mobility section to a trace."""

import random

from orchestrator.mobility.random_waypoint import random_waypoint_path
from orchestrator.mobility.trace import Trace, Waypoint
from orchestrator.spec.topology import RandomWaypoint, Topology


def generate_trace(topology: Topology, seed: int, until: float) -> Trace:
    """Each node draws from a stream of its own, so that adding a node leaves the others' paths alone."""
    mobility = topology.mobility
    if isinstance(mobility, RandomWaypoint):
        return Trace(
            {
                node: random_waypoint_path(
                    random.Random(f"mobility/{seed}/{node}"),
                    (topology.area.width, topology.area.height),
                    (mobility.speed - mobility.speed_spread, mobility.speed + mobility.speed_spread),
                    (mobility.pause - mobility.pause_spread, mobility.pause + mobility.pause_spread),
                    until,
                )
                for node in topology.node_names
            }
        )
    return Trace({node: (Waypoint(0.0, x, y),) for node, (x, y) in topology.static_positions().items()})
