"""Reference-point group mobility (Hong et al. 1999): groups follow their leaders, members move around them.

A group's first node leads by random waypoint. Each other member moves by random waypoint in a disc around the
leader; its path is the sum of both, which is again piecewise linear. Leaders keep a radius away from the
border, so that members stay inside the area.
"""

import random
from collections.abc import Sequence
from itertools import pairwise
from math import cos, sin, sqrt, tau
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from orchestrator.errors import BadInput
from orchestrator.mobility.arguments import check_area, check_at_least, check_span
from orchestrator.mobility.legs import MIN_SPEED, travel
from orchestrator.mobility.moving import (
    ACROSS,
    LEAST_CROSSING_S,
    LEAST_LEG_M,
    Pausing,
    down_to_zero,
    some,
    too_fast,
    too_wide,
)
from orchestrator.mobility.random_waypoint import random_waypoint_path
from orchestrator.model.trace import Area, Path, Position, Span, Trace, Waypoint
from orchestrator.spec import area as spec
from orchestrator.spec.problems import Finding, Unusable, did_you_mean, shown, unusable
from orchestrator.spec.units import LENGTH, Speed

SMALLEST_RADIUS_M = 0.001


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
    """The first node of each group leads by random waypoint; the others move around it."""

    model: Literal["group"]
    groups: Groups = Field(examples=[4])
    radius: Annotated[float, LENGTH.within(ge=LEAST_LEG_M)] = Field(
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
            beside = too_wide(key, mean, spread, "m/s") + down_to_zero(key, mean, spread)
        return super().findings() + beside

    def members(self, nodes: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
        """Returns the nodes of each group. A mere number of groups splits the list in order, as evenly as
        possible.
        """
        if isinstance(self.groups, tuple):
            return self.groups
        ends = [len(nodes) * number // self.groups for number in range(self.groups + 1)]
        return tuple(nodes[a:b] for a, b in pairwise(ends))

    def summary(self) -> str:
        count = len(self.groups) if isinstance(self.groups, tuple) else self.groups
        return (
            f"{count} groups, leaders {self.pace()}; members within {self.radius:g} m, "
            f"{self.member_speed:g} ± {self.member_speed_spread:g} m/s beside"
        )

    def findings_for(self, nodes: tuple[str, ...], area: spec.Area) -> list[Finding]:
        findings = _misgrouped(nodes, self.groups) + _cramped(self.radius, area)
        if 2 * self.radius < LEAST_CROSSING_S * self.member_speeds[1]:
            text = f"{self.radius:g} m: members at up to {self.member_speeds[1]:g} m/s {ACROSS}"
            hint = "use a larger one, or slower members"
            return [*findings, Finding(("mobility", "radius"), text, hint)]
        return findings + too_fast(area, max(area) - 2 * self.radius, self.speeds[1])

    def trace(self, nodes: tuple[str, ...], area: spec.Area, seed: int, until: float) -> Trace:
        groups = self.members(nodes)
        paths = group_paths(
            seed, groups, area, self.speeds, self.pauses, self.radius, self.member_speeds, until
        )
        return Trace({node: paths[node] for node in nodes})


def _misgrouped(nodes: tuple[str, ...], groups: int | tuple[tuple[str, ...], ...]) -> list[Finding]:
    at = ("mobility", "groups")
    if isinstance(groups, int):
        fits = groups <= len(nodes)
        return [] if fits else [Finding(at, f"{groups} groups, but only {len(nodes)} nodes")]
    findings = []
    known, seen = frozenset(nodes), set[str]()
    for number, members in enumerate(groups):
        for index, node in enumerate(members):
            if node not in known:
                text = f"there is no node {shown(node)}"
                findings.append(Finding((*at, number, index), text, did_you_mean(node, nodes)))
            elif node in seen:
                findings.append(Finding((*at, number, index), f"{shown(node)} is in a group already"))
            seen.add(node)
    without = [node for node in nodes if node not in seen]
    if without:
        hint = "every node needs one; a group may consist of its leader alone"
        findings.append(Finding(at, f"no group for {some(without)}", hint))
    return findings


def _cramped(radius: float, area: spec.Area) -> list[Finding]:
    if 2 * radius < min(area):
        return []
    text = f"{radius:g} m: a group of that radius does not fit into {area}"
    return [Finding(("mobility", "radius"), text, f"use less than {min(area) / 2:g} m, or a larger area")]


def group_paths(
    seed: int,
    groups: Sequence[Sequence[str]],
    area: Area,
    speed: Span,
    pause: Span,
    radius: float,
    member_speed: Span,
    until: float,
) -> dict[str, Path]:
    """Returns all nodes' paths over [0, until]. Leaders move at ``speed``, members at ``member_speed``
    relative to them.
    """
    paths: dict[str, Path] = {}
    for leader, *members in filter(None, groups):
        lead = leader_path(random.Random(f"mobility/{seed}/{leader}"), area, speed, pause, radius, until)
        paths[leader] = lead
        for member in members:
            rng = random.Random(f"mobility/{seed}/{member}")
            paths[member] = member_path(rng, lead, radius, member_speed, until)
    return paths


def leader_path(
    rng: random.Random, area: Area, speed: Span, pause: Span, radius: float, until: float
) -> Path:
    check_area(area)
    check_at_least("group radius", radius, SMALLEST_RADIUS_M)
    if 2 * radius >= min(area):
        raise BadInput(f"group radius {radius:g} m: a group does not fit into {area[0]:g} m × {area[1]:g} m")
    inner = area[0] - 2 * radius, area[1] - 2 * radius
    path = random_waypoint_path(rng, inner, speed, pause, until)
    return tuple(Waypoint(t, x + radius, y + radius) for t, x, y in path)


def member_path(rng: random.Random, leader: Path, radius: float, speed: Span, until: float) -> Path:
    check_at_least("group radius", radius, SMALLEST_RADIUS_M)
    check_span("member speed", speed, above=0.0)
    offset = [Waypoint(0.0, *_in_disc(rng, radius))]
    while offset[-1].t < until:
        travel(offset, _in_disc(rng, radius), rng.uniform(max(speed[0], MIN_SPEED), speed[1]))
    return _sum(leader, tuple(offset), until)


def _in_disc(rng: random.Random, radius: float) -> Position:
    # A little inside, so that rounding of the sum never carries a member over the border of the area.
    r, angle = (1 - 1e-9) * radius * sqrt(rng.random()), rng.uniform(0, tau)
    return r * cos(angle), r * sin(angle)


def _sum(a: Path, b: Path, until: float) -> Path:
    both = Trace({"a": a, "b": b})
    inner = {w.t for path in (a, b) for w in path if w.t < until}
    times = [*sorted(inner), until] if until > 0 else [0.0]
    return tuple(
        Waypoint(t, ax + bx, ay + by)
        for t, (ax, ay), (bx, by) in ((t, both.position("a", t), both.position("b", t)) for t in times)
    )
