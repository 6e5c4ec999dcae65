"""Who is there, how they move, which radio: the topology file as a value."""

from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema, model_validator

from orchestrator.spec.base import NAME_PATTERN, Count, Name, Section, check_name
from orchestrator.spec.problems import Finding, Unusable, did_you_mean, shown, unusable
from orchestrator.spec.units import LENGTH, BitRate, Duration, PositiveLength, Speed

MAX_NODES = 10_000
_HOSTS_PER_BLOCK = 250

Position = tuple[float, float]


class Area(NamedTuple):
    """The rectangle nodes live in, from (0, 0), in metres."""

    width: float
    height: float

    def __str__(self) -> str:
        width, height = (repr(side).removesuffix(".0") for side in self)
        return f"{width} m x {height} m"


def _read_area(value: Any) -> Area:
    parts = value.replace("×", "x").split("x") if isinstance(value, str) else value
    if not isinstance(parts, list | tuple) or len(parts) != 2:
        raise unusable(f"{shown(value)} is not an area", "write it like 1200 m x 1200 m or [1200 m, 1200 m]")
    side = LENGTH.positive()
    return Area(side.read(parts[0]), side.read(parts[1]))


def _read_position(value: Any) -> Position:
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise unusable(f"{shown(value)} is not a position", "write it like [100 m, 250 m]")
    return LENGTH.read(value[0]), LENGTH.read(value[1])


def _read_nodes(value: Any) -> int | tuple[str, ...]:
    if isinstance(value, int) and not isinstance(value, bool):
        if not 1 <= value <= MAX_NODES:
            raise unusable(f"{value} nodes: between 1 and {MAX_NODES} are supported")
        return value
    if not isinstance(value, list | tuple):
        raise unusable(f"{shown(value)} is neither a number of nodes nor a list of names", "nodes: 25")
    if not 1 <= len(value) <= MAX_NODES:
        raise unusable(f"a list of {len(value)} nodes: between 1 and {MAX_NODES} are supported")
    findings: list[Finding] = []
    first: dict[str, int] = {}
    for index, entry in enumerate(value):
        try:
            name = check_name(entry)
        except Unusable as error:
            findings += [Finding((index,), f.message, f.hint) for f in error.findings]
            continue
        if name in first:
            findings.append(Finding((index,), f"the node {shown(name)} is listed twice"))
        first.setdefault(name, index)
    if findings:
        raise Unusable(*findings)
    return tuple(value)


Nodes = Annotated[
    int | tuple[str, ...],
    BeforeValidator(_read_nodes),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": 1, "maximum": MAX_NODES},
                {
                    "type": "array",
                    "minItems": 1,
                    "uniqueItems": True,
                    "items": {"type": "string", "pattern": f"^{NAME_PATTERN}$"},
                },
            ],
            "description": "How many nodes (named n01, n02, …), or a list of their names",
        }
    ),
]
AreaField = Annotated[
    Area,
    BeforeValidator(_read_area),
    PlainSerializer(str),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "pattern": r"^[^x×]+[x×][^x×]+$"},
                {"type": "array", "minItems": 2, "maxItems": 2, "items": {"type": ["number", "string"]}},
            ],
            "description": "Width x height of the rectangle the nodes live in",
            "examples": ["1200 m x 1200 m"],
        }
    ),
]


PositionField = Annotated[
    Position,
    BeforeValidator(_read_position),
    WithJsonSchema(
        {"type": "array", "minItems": 2, "maxItems": 2, "items": {"type": ["number", "string"]}},
    ),
]


class RandomWaypoint(Section):
    """Walk to a random point, pause, repeat; speed and pause are uniform in mean ± spread."""

    model: Literal["random_waypoint"]
    speed: Speed = Field(examples=["5 m/s"])
    speed_spread: Speed = 0.0
    pause: Duration = 0.0
    pause_spread: Duration = 0.0

    @model_validator(mode="after")
    def _spread_within_mean(self) -> "RandomWaypoint":
        findings = []
        if self.speed == 0:
            findings.append(Finding(("speed",), "0 m/s: nodes would not move", "use model: static"))
        elif self.speed_spread > self.speed:
            text = f"{self.speed_spread:g} m/s is more than the speed itself ({self.speed:g} m/s)"
            findings.append(Finding(("speed_spread",), text, "speeds are drawn from speed ± speed_spread"))
        if self.pause_spread > self.pause:
            text = f"{self.pause_spread:g} s is more than the pause itself ({self.pause:g} s)"
            findings.append(Finding(("pause_spread",), text, "pauses are drawn from pause ± pause_spread"))
        if findings:
            raise Unusable(*findings)
        return self


class Grid(Section):
    """Nodes in rows from the corner (0, 0), in the order of their list."""

    columns: Count
    spacing: PositiveLength = Field(examples=["200 m"])


class Static(Section):
    """Nodes stay where they are put: at ``positions``, or on a ``grid``."""

    model: Literal["static"]
    positions: dict[Name, PositionField] | None = None
    grid: Grid | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> "Static":
        if (self.positions is None) == (self.grid is None):
            found = "neither is given" if self.grid is None else "both are given"
            raise unusable(
                f"static nodes need either positions or a grid; {found}",
                "for example grid: {columns: 5, spacing: 200 m}",
            )
        return self


Mobility = Annotated[RandomWaypoint | Static, Field(discriminator="model")]


class DiscRadio(Section):
    """In range or not: every node within ``range`` hears, nobody else."""

    model: Literal["disc"]
    range: PositiveLength = Field(examples=["300 m"])
    bandwidth: BitRate = Field(examples=["11 Mb/s"])
    latency: Duration = Field(examples=["1 ms"])


class Topology(Section):
    """Who is there, how they move, which radio."""

    name: Name = Field(examples=["rwp-25"])
    nodes: Nodes = Field(examples=[25])
    area: AreaField = Field(examples=["1200 m x 1200 m"])
    mobility: Mobility = Field(examples=["{model: random_waypoint, speed: 5 m/s}"])
    radio: DiscRadio = Field(examples=["{model: disc, range: 300 m, bandwidth: 11 Mb/s, latency: 1 ms}"])

    @property
    def node_names(self) -> tuple[str, ...]:
        if isinstance(self.nodes, tuple):
            return self.nodes
        width = max(2, len(str(self.nodes)))
        return tuple(f"n{number:0{width}}" for number in range(1, self.nodes + 1))

    def addresses(self) -> dict[str, str]:
        """Each node's address, by its place in the list."""
        return {
            node: f"10.77.{index // _HOSTS_PER_BLOCK}.{index % _HOSTS_PER_BLOCK + 1}"
            for index, node in enumerate(self.node_names)
        }

    def static_positions(self) -> dict[str, Position]:
        """Where each node stands for good; empty if nodes move."""
        if not isinstance(self.mobility, Static):
            return {}
        if self.mobility.positions is not None:
            return {node: self.mobility.positions[node] for node in self.node_names}
        grid = self.mobility.grid
        assert grid is not None
        return {
            node: (index % grid.columns * grid.spacing, index // grid.columns * grid.spacing)
            for index, node in enumerate(self.node_names)
        }

    @model_validator(mode="after")
    def _everyone_has_a_place(self) -> "Topology":
        if isinstance(self.mobility, Static):
            findings = _misnamed(self.node_names, self.mobility) or _outside(self)
            if findings:
                raise Unusable(*findings)
        return self


def _misnamed(nodes: tuple[str, ...], mobility: Static) -> list[Finding]:
    if mobility.positions is None:
        return []
    at = ("mobility", "positions")
    known = frozenset(nodes)
    unknown = [
        Finding((*at, name), f"there is no node {shown(name)}", did_you_mean(name, nodes))
        for name in mobility.positions
        if name not in known
    ]
    without = [node for node in nodes if node not in mobility.positions]
    if without:
        some = ", ".join(without[:5]) + (f" and {len(without) - 5} more" if len(without) > 5 else "")
        unknown.append(Finding(at, f"no position for {some}", "every node needs one"))
    return unknown


def _outside(topology: Topology) -> list[Finding]:
    area = topology.area
    outside = [n for n, (x, y) in topology.static_positions().items() if x > area.width or y > area.height]
    if isinstance(topology.mobility, Static) and topology.mobility.grid is not None and outside:
        text = f"the grid does not fit into {area} (first outside: {outside[0]})"
        return [Finding(("mobility", "grid"), text, "use a smaller spacing, other columns or a larger area")]
    text = f"outside the area of {area}"
    return [Finding(("mobility", "positions", node), text) for node in outside]
