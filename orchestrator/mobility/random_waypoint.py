"""Random waypoint: a node goes straight to a uniformly drawn point at a uniformly drawn speed, pauses,
repeats.

Beware of speed decay: nodes start uniformly placed on new legs, but slow legs last longer, so over time more
and more nodes are on slow legs. The mean speed falls from (low + high) / 2 towards (high - low) / ln(high /
low). With ``low`` near zero it falls towards zero and takes hours to settle. Meanwhile nodes gather in the
middle. ``steady_state`` starts in the state that this leads to.
"""

import random
from typing import Literal

from orchestrator.mobility.arguments import check_area
from orchestrator.mobility.legs import MIN_SPEED, roam, uniform_position
from orchestrator.mobility.moving import Flag, NodeByNode, Pausing, too_fast
from orchestrator.mobility.steady_state import steady_state_path
from orchestrator.model.trace import Area, Path, Span, Waypoint
from orchestrator.spec import area as spec
from orchestrator.spec.problems import Finding


class RandomWaypoint(NodeByNode, Pausing):
    """Nodes go straight to a random point, pause, repeat. ``steady_state``: start as if this had gone on for
    ever.
    """

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
        return f"random waypoint, {self.pace()}{', in its steady state' if self.steady_state else ''}"

    def findings_for(self, nodes: tuple[str, ...], area: spec.Area) -> list[Finding]:
        return too_fast(area, max(area), self.speeds[1])

    def path(self, rng: random.Random, area: Area, until: float) -> Path:
        path = steady_state_path if self.steady_state else random_waypoint_path
        return path(rng, area, self.speeds, self.pauses, until)


def random_waypoint_path(rng: random.Random, area: Area, speed: Span, pause: Span, until: float) -> Path:
    """Returns one node's path over [0, until] seconds; ``speed`` and ``pause`` are (low, high)."""
    check_area(area)
    path = [Waypoint(0.0, *uniform_position(rng, area))]
    roam(rng, path, area, speed, pause, until)
    return tuple(path)
