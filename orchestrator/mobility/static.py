"""Nodes that stay where they are: given positions, regular grids, uniformly scattered."""

import random
from collections.abc import Sequence
from math import ceil, sqrt

from orchestrator.errors import BadInput
from orchestrator.mobility.arguments import check_area, check_at_least
from orchestrator.mobility.random_waypoint import uniform_position
from orchestrator.mobility.trace import Area, Path, Position, Waypoint


def static_path(position: Position) -> Path:
    return (Waypoint(0.0, *position),)


def scattered_path(rng: random.Random, area: Area) -> Path:
    """A place drawn uniformly from the area."""
    check_area(area)
    return static_path(uniform_position(rng, area))


def grid_paths(
    nodes: Sequence[str], spacing: float, columns: int | None = None, origin: Position = (0.0, 0.0)
) -> dict[str, Path]:
    """Row by row from ``origin``; ``columns`` unless given makes the grid as square as it gets."""
    check_at_least("grid spacing", spacing, 0.0)
    if columns is None:
        columns = ceil(sqrt(len(nodes)))
    elif columns < 1:
        raise BadInput(f"grid of {columns} columns: needs at least one")
    return {
        node: static_path((origin[0] + i % columns * spacing, origin[1] + i // columns * spacing))
        for i, node in enumerate(nodes)
    }
