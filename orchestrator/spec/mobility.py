"""The ``mobility`` section of a topology: the registry of models, and what a model is.

A model is one class: its fields are its parameters in the file, ``trace`` says where nodes are over time.

    class Orbit(MobilityModel):
        radius: PositiveLength = 100.0

        def trace(self, nodes: tuple[str, ...], area: Area, seed: int, until: float) -> Trace: ...

A topology names it by its file, ``mobility: {model: my_mobility.py:Orbit, radius: 50 m}``, or by the name
that a package gives it among its entry points of the group ``rove.mobility_models``.
"""

from typing import Annotated, Self

from pydantic import model_validator

from node_agent.extensions import ExtensionError, Registry
from orchestrator.model.trace import Drives, Position, Trace, driven
from orchestrator.spec.area import Area
from orchestrator.spec.base import Section
from orchestrator.spec.problems import Finding, Unusable, in_words
from orchestrator.spec.registered import Registered


class MobilityModel(Section):
    """Says how nodes move. The same parameters, nodes, area and seed give the same trace."""

    model: str

    def trace(self, nodes: tuple[str, ...], area: Area, seed: int, until: float) -> Trace:
        """Returns one path within ``area`` for each of ``nodes``, from 0 to at least ``until`` seconds."""
        raise NotImplementedError

    def drives(self, nodes: tuple[str, ...], area: Area, seed: int, until: float) -> Drives:
        """Returns the same movements with speeds, and with lanes if the model has streets."""
        return {node: driven(path) for node, path in self.trace(nodes, area, seed, until).paths.items()}

    def summary(self) -> str:
        """Describes the model in one line."""
        own = [f"{key} {in_words(value)}" for key, value in self if key != "model"]
        return ", ".join([self.model.rpartition("/")[2], *own])

    def findings(self) -> list[Finding]:
        """Returns what is wrong with the combination of parameters; places are keys of this section."""
        return []

    def findings_for(self, nodes: tuple[str, ...], area: Area) -> list[Finding]:
        """Returns what these nodes cannot do in this area; places are keys of the topology."""
        return []

    def fixed_positions(self, nodes: tuple[str, ...]) -> dict[str, Position]:
        """Returns the position of each node if the file fixes it; empty if nodes move or the seed places
        them.
        """
        return {}

    def mean_speed(self) -> float | None:
        """Returns the mean speed in m/s, 0 if no node ever moves; None: compute it from the trace."""
        return None

    def summary_for(self, nodes: tuple[str, ...], area: Area) -> str:
        """Describes the model in one line, with facts that depend on these nodes and this area."""
        return self.summary()

    @model_validator(mode="after")
    def _makes_sense(self) -> Self:
        if findings := self.findings():
            raise Unusable(*findings)
        return self


def _checked_model(name: str, value: object) -> type[MobilityModel]:
    if not isinstance(value, type) or not issubclass(value, MobilityModel):
        base = f"{MobilityModel.__module__}.{MobilityModel.__name__}"
        raise ExtensionError(f"{name} is not a mobility model: derive a class from {base}")
    if value.trace is MobilityModel.trace:
        raise ExtensionError(f"the mobility model {name} does not define trace(nodes, area, seed, until)")
    return value


MOBILITY_MODELS: Registry[type[MobilityModel]] = Registry(
    "mobility model",
    "rove.mobility_models",
    _checked_model,
    {
        "random_waypoint": "orchestrator.mobility.random_waypoint:RandomWaypoint",
        "random_walk": "orchestrator.mobility.random_walk:RandomWalk",
        "gauss_markov": "orchestrator.mobility.gauss_markov:GaussMarkov",
        "group": "orchestrator.mobility.group:Group",
        "static": "orchestrator.mobility.static:Static",
        "stations": "orchestrator.mobility.stations:Stations",
        "sumo": "orchestrator.mobility.sumo:SumoTraffic",
        "trace": "orchestrator.mobility.recorded:RecordedTrace",
    },
)

MobilityField = Annotated[MobilityModel, Registered(MOBILITY_MODELS, "model")]
