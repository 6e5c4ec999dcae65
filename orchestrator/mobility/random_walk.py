"""Random walk: a new direction and speed for each leg of fixed duration or length; the border reflects.

The density stays uniform (unlike random waypoint). With legs of fixed length, slow ones last longer and the
mean speed decays as in random waypoint; with legs of fixed duration it does not.
"""

import random
from math import cos, sin, tau
from typing import Annotated, Literal

from pydantic import Field

from orchestrator.mobility.arguments import check_area, check_at_least, check_span
from orchestrator.mobility.border import bounce
from orchestrator.mobility.legs import uniform_position
from orchestrator.mobility.moving import LEAST_LEG_M, LEAST_STEP_S, Moving, NodeByNode, down_to_zero, too_fast
from orchestrator.model.trace import Area, Path, Span, Waypoint
from orchestrator.spec import area as spec
from orchestrator.spec.problems import Finding
from orchestrator.spec.units import DURATION, LENGTH

SHORTEST_LEG = 0.001


class RandomWalk(NodeByNode, Moving):
    """A new direction and speed every ``time``, or every ``distance``; the border reflects."""

    model: Literal["random_walk"]
    time: Annotated[float, DURATION.within(ge=LEAST_STEP_S)] | None = Field(default=None, examples=["10 s"])
    distance: Annotated[float, LENGTH.within(ge=LEAST_LEG_M)] | None = Field(default=None, examples=["50 m"])

    def findings(self) -> list[Finding]:
        findings = super().findings()
        findings = findings or down_to_zero("speed", self.speed, self.speed_spread)
        if (self.time is None) == (self.distance is None):
            found = "neither is given" if self.time is None else "both are given"
            text = f"a walk needs either a time or a distance between two turns; {found}"
            findings.append(Finding((), text, "for example time: 10 s"))
        return findings

    def summary(self) -> str:
        turn = f"{self.time:g} s" if self.time is not None else f"{self.distance:g} m"
        return f"random walk, {self.speed:g} ± {self.speed_spread:g} m/s, turning every {turn}"

    def findings_for(self, nodes: tuple[str, ...], area: spec.Area) -> list[Finding]:
        return too_fast(area, min(area), self.speeds[1])

    def path(self, rng: random.Random, area: Area, until: float) -> Path:
        if self.time is not None:
            return random_walk_path(rng, area, self.speeds, self.time, until, by="time")
        assert self.distance is not None, "one of both is given"
        return random_walk_path(rng, area, self.speeds, self.distance, until, by="distance")


def random_walk_path(
    rng: random.Random,
    area: Area,
    speed: Span,
    leg: float,
    until: float,
    *,
    by: Literal["time", "distance"] = "time",
) -> Path:
    """Returns one node's path over [0, until]; ``leg`` is in seconds or, by distance, in metres."""
    check_area(area)
    check_span("speed", speed, above=0.0)
    check_at_least("leg", leg, SHORTEST_LEG)
    path = [Waypoint(0.0, *uniform_position(rng, area))]
    while path[-1].t < until:
        direction, v = rng.uniform(0, tau), rng.uniform(*speed)
        bounce(path, (v * cos(direction), v * sin(direction)), leg if by == "time" else leg / v, area)
    return tuple(path)
