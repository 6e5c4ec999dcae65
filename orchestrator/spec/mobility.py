"""How nodes move: the models that a topology's ``mobility`` section may name, and their parameters."""

from itertools import pairwise
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from orchestrator.mobility.random_waypoint import MIN_SPEED
from orchestrator.mobility.trace import Position, Span
from orchestrator.spec.base import Count, Name, Section
from orchestrator.spec.problems import Finding, Unusable, shown, unusable
from orchestrator.spec.units import ANGLE, DURATION, LENGTH, Angle, Duration, PositiveLength, Speed

_LEAST_STEP_S = 0.1
_LEAST_LEG_M = 1.0

Flag = Annotated[bool, Field(strict=True)]


class MobilityModel(Section):
    """What all models have in common."""

    model: str

    def summary(self) -> str:
        """In one line, for people."""
        raise NotImplementedError

    def findings(self) -> list[Finding]:
        """What is wrong with the parameters taken together."""
        return []

    @model_validator(mode="after")
    def _makes_sense(self) -> Self:
        if findings := self.findings():
            raise Unusable(*findings)
        return self


class Moving(MobilityModel):
    """Speeds are uniform in mean ± spread."""

    speed: Speed = Field(examples=["5 m/s"])
    speed_spread: Speed = 0.0

    @property
    def speeds(self) -> Span:
        return self.speed - self.speed_spread, self.speed + self.speed_spread

    def findings(self) -> list[Finding]:
        if self.speed == 0:
            return [Finding(("speed",), "0 m/s: nodes would not move", "use model: static")]
        return _too_wide("speed", self.speed, self.speed_spread, "m/s")


class Pausing(Moving):
    """As are the pauses between two legs."""

    pause: Duration = 0.0
    pause_spread: Duration = 0.0

    @property
    def pauses(self) -> Span:
        return self.pause - self.pause_spread, self.pause + self.pause_spread

    def findings(self) -> list[Finding]:
        return super().findings() + _too_wide("pause", self.pause, self.pause_spread, "s")

    def _pace(self) -> str:
        return f"{self.speed:g} ± {self.speed_spread:g} m/s, pause {self.pause:g} ± {self.pause_spread:g} s"


def _too_wide(key: str, mean: float, spread: float, unit: str) -> list[Finding]:
    if spread <= mean:
        return []
    text = f"{spread:g} {unit} is more than the {key} itself ({mean:g} {unit})"
    hint = f"{key.replace('_', ' ')}s are drawn from {key} ± {key}_spread"
    return [Finding((f"{key}_spread",), text, hint)]


def _down_to_zero(key: str, mean: float, spread: float) -> list[Finding]:
    """For models in which a node without speed would never get anywhere."""
    if not 0 <= mean - spread < MIN_SPEED:
        return []
    text = f"speeds go down to {mean - spread:g} m/s; the lowest must be at least {MIN_SPEED:g} m/s"
    return [Finding((f"{key}_spread",), text, f"keep it below {key}")]


class RandomWaypoint(Pausing):
    """Go straight to a random point, pause, repeat; with ``steady_state`` as if this had gone on for ever."""

    model: Literal["random_waypoint"]
    steady_state: Flag = False

    def findings(self) -> list[Finding]:
        findings = super().findings()
        if not findings and self.steady_state and self.speeds[0] < MIN_SPEED:
            text = f"there is none: speeds go down to {self.speeds[0]:g} m/s, so that in the end nobody moves"
            hint = f"keep the lowest speed (speed - speed_spread) at {MIN_SPEED:g} m/s or above"
            findings.append(Finding(("steady_state",), text, hint))
        return findings

    def summary(self) -> str:
        return f"random waypoint, {self._pace()}{', in its steady state' if self.steady_state else ''}"


class RandomWalk(Moving):
    """A new direction and speed every ``time``, or every ``distance``; the border reflects."""

    model: Literal["random_walk"]
    time: Annotated[float, DURATION.within(ge=_LEAST_STEP_S)] | None = Field(default=None, examples=["10 s"])
    distance: Annotated[float, LENGTH.within(ge=_LEAST_LEG_M)] | None = Field(default=None, examples=["50 m"])

    def findings(self) -> list[Finding]:
        findings = super().findings()
        findings = findings or _down_to_zero("speed", self.speed, self.speed_spread)
        if (self.time is None) == (self.distance is None):
            found = "neither is given" if self.time is None else "both are given"
            text = f"a walk needs either a time or a distance between two turns; {found}"
            findings.append(Finding((), text, "for example time: 10 s"))
        return findings

    def summary(self) -> str:
        turn = f"{self.time:g} s" if self.time is not None else f"{self.distance:g} m"
        return f"random walk, {self.speed:g} ± {self.speed_spread:g} m/s, turning every {turn}"


class GaussMarkov(MobilityModel):
    """Speed and direction remember their past: not at all with ``alpha`` 0, for ever with 1."""

    model: Literal["gauss_markov"]
    speed: Speed = Field(examples=["5 m/s"], description="Mean speed")
    speed_deviation: Speed = Field(default=0.0, description="Standard deviation of the speed")
    max_speed: Speed | None = Field(
        default=None, description="What faster ones are cut to; speed + 3 speed_deviation if not given"
    )
    alpha: Annotated[float, Field(strict=True, ge=0, le=1, allow_inf_nan=False)] = 0.75
    direction: Angle | None = Field(
        default=None,
        description="Mean direction, from the x axis towards the y axis; drawn for each node if not given",
    )
    direction_deviation: Annotated[float, ANGLE.within(ge=0)] = 45.0
    step: Annotated[float, DURATION.within(ge=_LEAST_STEP_S)] = Field(
        default=1.0, description="Time between two changes"
    )
    border: Literal["reflect", "steer"] = Field(
        default="reflect", description="Bounce off, or turn to the middle when near"
    )

    @property
    def fastest(self) -> float:
        return self.speed + 3 * self.speed_deviation if self.max_speed is None else self.max_speed

    def findings(self) -> list[Finding]:
        if self.speed == 0:
            return [Finding(("speed",), "0 m/s: nodes would not move", "use model: static")]
        if self.fastest < self.speed:
            text = f"{self.fastest:g} m/s is less than the mean speed ({self.speed:g} m/s)"
            return [Finding(("max_speed",), text)]
        return []

    def summary(self) -> str:
        return (
            f"Gauss-Markov, {self.speed:g} m/s (deviation {self.speed_deviation:g}, "
            f"at most {self.fastest:g}), alpha {self.alpha:g}, every {self.step:g} s"
        )


def _read_groups(value: Any) -> int | tuple[tuple[str, ...], ...]:
    hint = "write groups: 4, or groups: [[n01, n02], [n03, n04]]"
    if isinstance(value, int) and not isinstance(value, bool):
        if value < 1:
            raise unusable(f"{value} groups: at least 1 is needed")
        return value
    if not isinstance(value, list | tuple) or not value:
        raise unusable(f"{shown(value)} is neither a number of groups nor a list of them", hint)
    findings = [
        Finding(
            (index,),
            "the group is empty" if group == [] else f"{shown(group)}: expected a list of names",
            hint,
        )
        for index, group in enumerate(value)
        if not isinstance(group, list | tuple) or not group or not all(isinstance(n, str) for n in group)
    ]
    if findings:
        raise Unusable(*findings)
    return tuple(tuple(group) for group in value)


Groups = Annotated[
    int | tuple[tuple[str, ...], ...],
    BeforeValidator(_read_groups),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": 1},
                {
                    "type": "array",
                    "minItems": 1,
                    "items": {"type": "array", "minItems": 1, "items": {"type": "string"}},
                },
            ],
            "description": "How many groups of like size, or the names of each one's nodes, its leader first",
        }
    ),
]


class Group(Pausing):
    """Reference points: the first of each group leads by random waypoint, the others roam around it."""

    model: Literal["group"]
    groups: Groups = Field(examples=[4])
    radius: Annotated[float, LENGTH.within(ge=_LEAST_LEG_M)] = Field(
        examples=["50 m"], description="How far from its leader a member may be"
    )
    member_speed: Speed = Field(default=1.0, description="Relative to the leader")
    member_speed_spread: Speed = 0.0

    @property
    def member_speeds(self) -> Span:
        return self.member_speed - self.member_speed_spread, self.member_speed + self.member_speed_spread

    def findings(self) -> list[Finding]:
        key, mean, spread = "member_speed", self.member_speed, self.member_speed_spread
        if mean == 0:
            beside = [Finding((key,), "0 m/s: members would not move beside their leader", "use a slow one")]
        else:
            beside = _too_wide(key, mean, spread, "m/s") + _down_to_zero(key, mean, spread)
        return super().findings() + beside

    def members(self, nodes: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
        """The nodes of each group; a mere number of groups splits the list in order, as evenly as it goes."""
        if isinstance(self.groups, tuple):
            return self.groups
        ends = [len(nodes) * number // self.groups for number in range(self.groups + 1)]
        return tuple(nodes[a:b] for a, b in pairwise(ends))

    def summary(self) -> str:
        count = len(self.groups) if isinstance(self.groups, tuple) else self.groups
        return (
            f"{count} groups, leaders {self._pace()}; members within {self.radius:g} m, "
            f"{self.member_speed:g} ± {self.member_speed_spread:g} m/s beside"
        )


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
    """Nodes stay where they are put: at ``positions``, on a ``grid``, or where the seed scatters them."""

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
