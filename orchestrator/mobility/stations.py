"""The mobility model ``stations``: some nodes stand at given places, and all others move by another model.

mobility:
  model: stations
  at: {b1: [200 m, 200 m], b2: [600 m, 200 m]}
  others: {model: sumo, block: 200 m}
"""

from typing import Annotated, Literal

from pydantic import Field, WithJsonSchema

from orchestrator.mobility.moving import some
from orchestrator.mobility.static import PositionField, static_path
from orchestrator.model.trace import Drives, Trace, driven
from orchestrator.spec import area as spec
from orchestrator.spec.base import Name
from orchestrator.spec.mobility import MOBILITY_MODELS, MobilityModel
from orchestrator.spec.problems import Finding, did_you_mean, shown
from orchestrator.spec.registered import Registered

Others = Annotated[
    MobilityModel,
    Registered(MOBILITY_MODELS, "model"),
    # Models within models would have no end.
    WithJsonSchema({"type": "object", "required": ["model"], "description": "A mobility section of its own"}),
]


class Stations(MobilityModel):
    """Nodes that stand, such as brokers or base stations, among nodes that move."""

    model: Literal["stations"]
    at: dict[Name, PositionField] = Field(min_length=1, examples=[{"b1": ["200 m", "200 m"]}])
    others: Others = Field(examples=["{model: random_waypoint, speed: 5 m/s}"])

    def trace(self, nodes: tuple[str, ...], area: spec.Area, seed: int, until: float) -> Trace:
        moving = self.others.trace(self._moving(nodes), area, seed, until).paths
        return Trace(
            {node: static_path(self.at[node]) if node in self.at else moving[node] for node in nodes}
        )

    def drives(self, nodes: tuple[str, ...], area: spec.Area, seed: int, until: float) -> Drives:
        moving = self.others.drives(self._moving(nodes), area, seed, until)
        standing = {node: driven(static_path(place)) for node, place in self.at.items()}
        return {node: standing[node] if node in standing else moving[node] for node in nodes}

    def findings_for(self, nodes: tuple[str, ...], area: spec.Area) -> list[Finding]:
        at = ("mobility", "at")
        known = frozenset(nodes)
        found = [
            Finding((*at, name), f"there is no node {shown(name)}", did_you_mean(name, nodes))
            for name in self.at
            if name not in known
        ]
        found += [
            Finding((*at, name), f"outside the area of {area}")
            for name, (x, y) in self.at.items()
            if x > area.width or y > area.height
        ]
        moving = self._moving(nodes)
        if not MOBILITY_MODELS.is_builtin(self.others.model):
            text = "stations go together with Rove's own models only"
            found.append(Finding(("mobility", "others", "model"), text))
        elif not moving:
            found.append(Finding(("mobility", "others"), "no node is left to move", "use model: static"))
        else:
            found += [
                Finding(("mobility", "others", *each.at[1:]), each.message, each.hint)
                for each in self.others.findings_for(moving, area)
            ]
        return found

    def mean_speed(self) -> float | None:
        return None

    def summary(self) -> str:
        return f"{some(list(self.at))} at given places; others: {self.others.summary()}"

    def _moving(self, nodes: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(node for node in nodes if node not in self.at)
