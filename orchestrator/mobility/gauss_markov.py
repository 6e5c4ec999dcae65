"""Gauss-Markov mobility: speed and direction depend on their past (Liang and Haas 1999; Camp et al. 2002).

Every ``step`` seconds value = α·value + (1-α)·mean + √(1-α²)·noise. With α = 0 nothing of the past counts,
with α = 1 nodes never turn. The process starts from its stationary distribution, so it needs no warm-up. The
applied speed is cut to [0, max_speed], while the process itself stays Gaussian.
"""

import random
from math import atan2, cos, pi, radians, sin, sqrt, tau
from typing import Annotated, Literal

from pydantic import Field

from orchestrator.errors import BadInput
from orchestrator.mobility.arguments import check_area, check_at_least, check_span
from orchestrator.mobility.border import bounce
from orchestrator.mobility.legs import uniform_position
from orchestrator.mobility.moving import LEAST_STEP_S, STANDING, NodeByNode, too_fast
from orchestrator.model.trace import Area, Path, Waypoint
from orchestrator.spec import area as spec
from orchestrator.spec.problems import Finding
from orchestrator.spec.units import ANGLE, DURATION, Angle, Speed

SHORTEST_STEP_S = 0.001
Border = Literal["reflect", "steer"]
STEER_MARGIN = 0.1
"""Steering begins at this distance from a border, as a share of the shorter side."""


class GaussMarkov(NodeByNode):
    """Speed and direction depend on their past: not at all with ``alpha`` 0, completely with 1."""

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
    step: Annotated[float, DURATION.within(ge=LEAST_STEP_S)] = Field(
        default=1.0, description="Time between two changes"
    )
    border: Border = Field(default="reflect", description="Bounce off, or turn to the middle when near")

    @property
    def fastest(self) -> float:
        return self.speed + 3 * self.speed_deviation if self.max_speed is None else self.max_speed

    def findings(self) -> list[Finding]:
        if self.speed == 0:
            return [STANDING]
        if self.fastest < self.speed:
            text = f"{self.fastest:g} m/s is less than the mean speed ({self.speed:g} m/s)"
            return [Finding(("max_speed",), text)]
        return []

    def summary(self) -> str:
        return (
            f"Gauss-Markov, {self.speed:g} m/s (deviation {self.speed_deviation:g}, "
            f"at most {self.fastest:g}), alpha {self.alpha:g}, every {self.step:g} s"
        )

    def mean_speed(self) -> float:
        return self.speed

    def findings_for(self, nodes: tuple[str, ...], area: spec.Area) -> list[Finding]:
        return too_fast(area, min(area), self.fastest)

    def path(self, rng: random.Random, area: Area, until: float) -> Path:
        return gauss_markov_path(
            rng,
            area,
            until,
            alpha=self.alpha,
            mean_speed=self.speed,
            speed_deviation=self.speed_deviation,
            max_speed=self.fastest,
            direction=None if self.direction is None else radians(self.direction),
            direction_deviation=radians(self.direction_deviation),
            step=self.step,
            border=self.border,
        )


def gauss_markov_path(
    rng: random.Random,
    area: Area,
    until: float,
    *,
    alpha: float,
    mean_speed: float,
    speed_deviation: float,
    max_speed: float,
    direction: float | None = None,
    direction_deviation: float = pi / 4,
    step: float = 1.0,
    border: Border = "reflect",
) -> Path:
    """Returns one node's path over [0, until]. ``direction`` is the mean direction in radians, drawn if not
    given.

    At the border a node and its mean direction are mirrored. With ``steer``, its mean direction also turns to
    the middle of the area while it is near a border.
    """
    check_area(area)
    check_at_least("step", step, SHORTEST_STEP_S)
    check_span("speed", (mean_speed, max_speed))
    if not 0 <= alpha <= 1:
        raise BadInput(f"alpha {alpha:g}: must be from 0 to 1")
    check_at_least("speed deviation", speed_deviation, 0.0)
    check_at_least("direction deviation", direction_deviation, 0.0)

    noise = sqrt(1 - alpha**2)
    mean_direction = rng.uniform(0, tau) if direction is None else direction
    path = [Waypoint(0.0, *uniform_position(rng, area))]
    speed = rng.gauss(mean_speed, speed_deviation)
    heading = rng.gauss(mean_direction, direction_deviation)
    while path[-1].t < until:
        applied = min(max(speed, 0.0), max_speed)
        before = applied * cos(heading), applied * sin(heading)
        after = bounce(path, before, step, area)
        if before[0] * after[0] < 0:
            heading, mean_direction = pi - heading, pi - mean_direction
        if before[1] * after[1] < 0:
            heading, mean_direction = -heading, -mean_direction
        goal = _steered(path[-1], area, mean_direction) if border == "steer" else mean_direction
        speed = alpha * speed + (1 - alpha) * mean_speed + noise * rng.gauss(0, speed_deviation)
        heading = alpha * heading + (1 - alpha) * _nearest_turn(goal, heading)
        heading += noise * rng.gauss(0, direction_deviation)
    return tuple(path)


def _steered(at: Waypoint, area: Area, mean_direction: float) -> float:
    width, height = area
    margin = STEER_MARGIN * min(area)
    if min(at.x, width - at.x, at.y, height - at.y) >= margin:
        return mean_direction
    return atan2(height / 2 - at.y, width / 2 - at.x)


def _nearest_turn(angle: float, to: float) -> float:
    """Adds full turns to a direction, so that blending it with ``to`` takes the shorter way round."""
    return angle + tau * round((to - angle) / tau)
