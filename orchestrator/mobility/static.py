"""Nodes that do not move: at given positions, on regular grids, or uniformly scattered."""

import random
from collections.abc import Sequence
from math import ceil, sqrt
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from orchestrator.errors import BadInput
from orchestrator.mobility.arguments import check_area, check_at_least
from orchestrator.mobility.legs import uniform_position
from orchestrator.mobility.moving import Flag, some
from orchestrator.model.trace import Area, Path, Position, Trace, Waypoint
from orchestrator.spec import area as spec
from orchestrator.spec.base import Count, Name, Section
from orchestrator.spec.mobility import MobilityModel
from orchestrator.spec.problems import Finding, did_you_mean, shown, unusable
from orchestrator.spec.units import LENGTH, PositiveLength


class Grid(Section):
    """Nodes in rows from the corner (0, 0), in the order of their list."""

    columns: Count
    spacing: PositiveLength = Field(examples=["200 m"])


def _read_position(value: Any) -> Position:
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise unusable(f"{shown(value)} is not a position", "write it like [100 m, 250 m]")
    return LENGTH.read(value[0]), LENGTH.read(value[1])


PositionField = Annotated[
    Position,
    BeforeValidator(_read_position),
    WithJsonSchema(
        {"type": "array", "minItems": 2, "maxItems": 2, "items": {"type": ["number", "string"]}},
    ),
]


class Static(MobilityModel):
    """Nodes do not move. They are at ``positions``, on a ``grid``, or where the seed scatters them."""

    model: Literal["static"]
    positions: dict[Name, PositionField] | None = None
    grid: Grid | None = None
    scatter: Flag = False

    def findings(self) -> list[Finding]:
        given = [self.positions is not None, self.grid is not None, self.scatter].count(True)
        if given == 1:
            return []
        found = "none is given" if given == 0 else f"{given} are given"
        text = f"static nodes need one of positions, grid and scatter; {found}"
        return [Finding((), text, "for example grid: {columns: 5, spacing: 200 m}")]

    def summary(self) -> str:
        if self.grid is not None:
            return f"static, on a grid of {self.grid.columns} columns, {self.grid.spacing:g} m apart"
        return "static, scattered by the seed" if self.scatter else "static, at given positions"

    def mean_speed(self) -> float:
        return 0.0

    def fixed_positions(self, nodes: tuple[str, ...]) -> dict[str, Position]:
        if self.positions is not None:
            return {node: self.positions[node] for node in nodes}
        grid = self.grid
        if grid is None:
            return {}
        return {
            node: (index % grid.columns * grid.spacing, index // grid.columns * grid.spacing)
            for index, node in enumerate(nodes)
        }

    def findings_for(self, nodes: tuple[str, ...], area: spec.Area) -> list[Finding]:
        return self._misnamed(nodes) or self._outside(nodes, area)

    def trace(self, nodes: tuple[str, ...], area: spec.Area, seed: int, until: float) -> Trace:
        if self.scatter:
            return Trace(
                {node: scattered_path(random.Random(f"mobility/{seed}/{node}"), area) for node in nodes}
            )
        return Trace({node: static_path(at) for node, at in self.fixed_positions(nodes).items()})

    def _misnamed(self, nodes: tuple[str, ...]) -> list[Finding]:
        if self.positions is None:
            return []
        at = ("mobility", "positions")
        known = frozenset(nodes)
        unknown = [
            Finding((*at, name), f"there is no node {shown(name)}", did_you_mean(name, nodes))
            for name in self.positions
            if name not in known
        ]
        without = [node for node in nodes if node not in self.positions]
        if without:
            unknown.append(Finding(at, f"no position for {some(without)}", "every node needs one"))
        return unknown

    def _outside(self, nodes: tuple[str, ...], area: spec.Area) -> list[Finding]:
        positions = self.fixed_positions(nodes)
        outside = [n for n, (x, y) in positions.items() if x > area.width or y > area.height]
        if self.grid is not None and outside:
            text = f"the grid does not fit into {area} (first outside: {outside[0]})"
            hint = "use a smaller spacing, other columns or a larger area"
            return [Finding(("mobility", "grid"), text, hint)]
        text = f"outside the area of {area}"
        return [Finding(("mobility", "positions", node), text) for node in outside]


def static_path(position: Position) -> Path:
    return (Waypoint(0.0, *position),)


def scattered_path(rng: random.Random, area: Area) -> Path:
    """Draws one position uniformly from the area."""
    check_area(area)
    return static_path(uniform_position(rng, area))


def grid_paths(
    nodes: Sequence[str], spacing: float, columns: int | None = None, origin: Position = (0.0, 0.0)
) -> dict[str, Path]:
    """Places nodes row by row from ``origin``. Without ``columns`` the grid is as square as possible."""
    check_at_least("grid spacing", spacing, 0.0)
    if columns is None:
        columns = ceil(sqrt(len(nodes)))
    elif columns < 1:
        raise BadInput(f"grid of {columns} columns: needs at least one")
    return {
        node: static_path((origin[0] + i % columns * spacing, origin[1] + i // columns * spacing))
        for i, node in enumerate(nodes)
    }
