"""Defines what all applications of an experiment share: the network, the time, and what makes a run valid."""

from typing import Annotated, Any

from pydantic import BeforeValidator, Field, model_validator

from node_agent.extensions import ExtensionError
from orchestrator.results.expectations import BadExpectation, parse_expectation, pattern
from orchestrator.spec.backends import AUTO, BACKENDS, Traits, traits_of
from orchestrator.spec.base import Name, Section, Seed
from orchestrator.spec.problems import shown, unusable
from orchestrator.spec.registered import RegisteredName
from orchestrator.spec.routing import RoutingField, read_protocol
from orchestrator.spec.topology import Topology
from orchestrator.spec.units import DURATION, SHARE, Duration, PositiveDuration

_LONGEST_EXPECTATION = 100

SHORTEST_LEASE_S = 6.0
Lease = Annotated[float, DURATION.within(ge=SHORTEST_LEASE_S, le=3600.0)]
NodeShare = Annotated[float, Field(strict=True, gt=0, le=1, allow_inf_nan=False)]


class Timeouts(Section):
    """How long each phase may take on the wall clock. Defaults are longer if nodes are other machines."""

    up: PositiveDuration = 60.0
    converge: PositiveDuration = 60.0
    stop: PositiveDuration = 30.0
    collect: PositiveDuration = 60.0
    down: PositiveDuration = 30.0


class Converge(Section):
    """What routing must have done before the query begins, besides knowing routes."""

    settled: Annotated[float, SHARE] | None = Field(
        default=None,
        description="No cost that applications use has changed by more than this share within 5 s; waits for "
        "that until timeouts.converge at most, and then goes on with a note",
        examples=["10%"],
    )


class Clocks(Section):
    """How exactly the clocks of nodes with their own clock must be known for a run to be valid."""

    uncertainty: PositiveDuration = Field(
        default=0.02, description="By how much a node's time may be off after correction"
    )


class LoadLimits(Section):
    """How busy the machines of a run in real time may be for the run to be valid."""

    delay: PositiveDuration = Field(
        default=0.001,
        description="How long the run's own processes may wait for a processor each time, on average",
    )
    waited: NodeShare = Field(
        default=0.5,
        description="Where that is not known: share of the measured time in which processes may wait for one",
    )
    late: PositiveDuration = Field(
        default=0.02, description="How late 99 % of the wake-ups of a process that sleeps may come"
    )


def _read_expectation(value: Any) -> str:
    if not isinstance(value, str) or len(value) > _LONGEST_EXPECTATION:
        raise unusable(f"{shown(value)} is not an expectation", 'write it like "goodput_fps > 1"')
    try:
        parse_expectation(value)
    except BadExpectation as error:
        raise unusable(error.problem, error.hint) from None
    return value.strip()


def _read_expectations(value: Any) -> Any:
    if isinstance(value, str):
        raise unusable(f"{shown(value)}: expected a list", f"write it as one: [{shown(value)}]")
    return value


class _ExpectationSchema:
    """Lists the known metrics. It does so only when the schema is generated."""

    def __get_pydantic_json_schema__(self, core: Any, handler: Any) -> dict[str, Any]:
        return {"type": "string", "pattern": pattern(), "examples": ["goodput_fps > 1"]}


ExpectationText = Annotated[
    str,
    BeforeValidator(_read_expectation),
    _ExpectationSchema(),
]


class Scenario(Section):
    """The part of an experiment that names no application."""

    name: Name = Field(examples=["quickstart"])
    topology: Topology = Field(examples=["../topologies/rwp-25.yaml"])
    backend: Annotated[str, RegisteredName(BACKENDS, words=(AUTO,), files=False)] = Field(
        default="sim", description="auto: netns where this machine permits it, else sim"
    )
    routing: RoutingField = Field(
        default_factory=read_protocol, examples=["{protocol: olsr, hello: 2s, hello_validity: 20s}"]
    )
    duration: PositiveDuration = Field(examples=["120s"], description="Measured time, after the warm-up")
    warmup: Duration = Field(default=0.0, description="Time before the measurement starts")
    seed: Seed = 1
    expect: Annotated[tuple[ExpectationText, ...], BeforeValidator(_read_expectations)] = ()
    timeouts: Timeouts = Timeouts()
    converge: Converge = Converge()
    clocks: Clocks = Clocks()
    load: LoadLimits = LoadLimits()
    quorum: NodeShare = Field(
        default=1.0, description="The share of nodes that must come through a phase for the run to go on"
    )
    lease: Lease = Field(
        default=60.0,
        description="How long other machines go on by themselves when they hear nothing from here",
    )

    @model_validator(mode="before")
    @classmethod
    def _timeouts_of_the_backend(cls, value: Any) -> Any:
        if not isinstance(value, dict) or value.get("backend") not in BACKENDS:
            return value
        try:
            own = BACKENDS[value["backend"]].timeouts
        except ExtensionError:  # the backend's own validation reports that
            return value
        stated = value.get("timeouts", {})
        return {**value, "timeouts": {**own, **stated}} if own and isinstance(stated, dict) else value

    @property
    def traits(self) -> Traits:
        """Returns the traits of the backend; those of ``auto`` are unknown until a backend is chosen."""
        return traits_of(self.backend)
