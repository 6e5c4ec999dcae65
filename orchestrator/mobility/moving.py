"""Shared by models of moving nodes: speeds, pauses, one random stream a node, and their checks."""

import random
from typing import Annotated

from pydantic import Field

from orchestrator.mobility.legs import MIN_SPEED
from orchestrator.model.trace import Area as Sides
from orchestrator.model.trace import Path, Span, Trace
from orchestrator.spec.area import Area
from orchestrator.spec.mobility import MobilityModel
from orchestrator.spec.problems import Finding
from orchestrator.spec.units import Duration, Speed

LEAST_STEP_S = 0.1
LEAST_LEG_M = 1.0
LEAST_CROSSING_S = 0.1
"""Positions are updated ten times a second; a node must not cross the area between two updates."""
ACROSS = f"would be across in less than {LEAST_CROSSING_S:g} s"

Flag = Annotated[bool, Field(strict=True)]


class NodeByNode(MobilityModel):
    """Gives each node a random stream of its own, so that adding a node does not change the others' paths."""

    def path(self, rng: random.Random, area: Sides, until: float) -> Path:
        """Returns the path of one node."""
        raise NotImplementedError

    def trace(self, nodes: tuple[str, ...], area: Area, seed: int, until: float) -> Trace:
        return Trace(
            {node: self.path(random.Random(f"mobility/{seed}/{node}"), area, until) for node in nodes}
        )


class Moving(MobilityModel):
    """Speeds are uniform in mean ± spread."""

    speed: Speed = Field(examples=["5 m/s"])
    speed_spread: Speed = 0.0

    @property
    def speeds(self) -> Span:
        return self.speed - self.speed_spread, self.speed + self.speed_spread

    def mean_speed(self) -> float:
        return self.speed

    def findings(self) -> list[Finding]:
        if self.speed == 0:
            return [STANDING]
        return too_wide("speed", self.speed, self.speed_spread, "m/s")


class Pausing(Moving):
    """Pauses between legs are uniform in mean ± spread, too."""

    pause: Duration = 0.0
    pause_spread: Duration = 0.0

    @property
    def pauses(self) -> Span:
        return self.pause - self.pause_spread, self.pause + self.pause_spread

    def findings(self) -> list[Finding]:
        return super().findings() + too_wide("pause", self.pause, self.pause_spread, "s")

    def pace(self) -> str:
        return f"{self.speed:g} ± {self.speed_spread:g} m/s, pause {self.pause:g} ± {self.pause_spread:g} s"


STANDING = Finding(("speed",), "0 m/s: nodes would not move", "use model: static")


def too_wide(key: str, mean: float, spread: float, unit: str) -> list[Finding]:
    if spread <= mean:
        return []
    text = f"{spread:g} {unit} is more than the {key} itself ({mean:g} {unit})"
    hint = f"{key.replace('_', ' ')}s are drawn from {key} ± {key}_spread"
    return [Finding((f"{key}_spread",), text, hint)]


def down_to_zero(key: str, mean: float, spread: float) -> list[Finding]:
    """Reports a speed range that reaches zero, for models in which such a node would never arrive."""
    if not 0 <= mean - spread < MIN_SPEED:
        return []
    text = f"speeds go down to {mean - spread:g} m/s; the lowest must be at least {MIN_SPEED:g} m/s"
    return [Finding((f"{key}_spread",), text, f"keep it below {key}")]


def too_fast(area: Area, room: float, speed: float) -> list[Finding]:
    """Reports a speed at which a node could cross its ``room`` in the area between two updates."""
    # If there is no room at all, another finding reports that.
    if room <= 0 or room >= LEAST_CROSSING_S * speed:
        return []
    text = f"{area}: nodes at up to {speed:g} m/s {ACROSS}"
    return [Finding(("area",), text, "use a larger area, or slower nodes")]


def some(nodes: list[str]) -> str:
    return ", ".join(nodes[:5]) + (f" and {len(nodes) - 5} more" if len(nodes) > 5 else "")
