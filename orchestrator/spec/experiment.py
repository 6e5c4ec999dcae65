"""The experiment file as a value: what runs where, for how long, and what is varied."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema, field_serializer, model_validator

from node_agent.apps.dataflow.model.decision import Rule
from node_agent.apps.dataflow.model.query import Query
from orchestrator.apps.dataflow.spec.delivery import Delivery
from orchestrator.apps.dataflow.spec.placement import Placement, RandomPlacement, Replicas
from orchestrator.apps.dataflow.spec.query import QueryField
from orchestrator.apps.dataflow.spec.switching import Switching, threshold_of
from orchestrator.results.expectations import parse_expectation, pattern
from orchestrator.spec.base import Name, Section, Seed
from orchestrator.spec.faults import Fault
from orchestrator.spec.problems import Finding, Unusable, shown, unusable
from orchestrator.spec.routing import Olsr, Routing
from orchestrator.spec.topology import Topology
from orchestrator.spec.units import DURATION, Duration, PositiveDuration

_LONGEST_EXPECTATION = 100
Scalar = int | float | str | bool
Varied = Scalar | dict[str, Any]
"""A value of a sweep; a mapping stands for a whole section."""
SECTIONS_TO_VARY = ("routing",)
"""What a sweep may vary by mappings."""

REMOTE = ("ssh", "core")
"""Backends whose nodes are on other machines."""
_REMOTE_TIMEOUTS = {"up": 300.0, "converge": 90.0, "stop": 60.0, "collect": 300.0, "down": 60.0}
"""What is deployed and collected goes over a network there."""
SHORTEST_LEASE_S = 6.0
Lease = Annotated[float, DURATION.within(ge=SHORTEST_LEASE_S, le=3600.0)]
NodeShare = Annotated[float, Field(strict=True, gt=0, le=1, allow_inf_nan=False)]


class Timeouts(Section):
    """How long each phase may take on the wall clock; longer by default where nodes are other machines."""

    up: PositiveDuration = 60.0
    converge: PositiveDuration = 60.0
    stop: PositiveDuration = 30.0
    collect: PositiveDuration = 60.0
    down: PositiveDuration = 30.0


class Clocks(Section):
    """How well the clocks of nodes that have their own must be known for a run to be valid."""

    uncertainty: PositiveDuration = Field(
        default=0.02, description="By how much a node's time may be off after correction"
    )


class LoadLimits(Section):
    """How busy the machines may be that a run in real time is on, for it to be valid."""

    waited: NodeShare = Field(
        default=0.5, description="Share of the measured time in which processes may wait for a processor"
    )
    late: PositiveDuration = Field(
        default=0.02, description="How late 99 % of the wake-ups of a process that sleeps may come"
    )


def _read_sweep(value: Any) -> dict[str, tuple[Varied, ...]]:
    if not isinstance(value, dict):
        raise unusable(f"{shown(value)} is not a mapping of what to vary", "sweep: {replicas: [1, 2, 3]}")
    findings = []
    for key, values in value.items():
        if not isinstance(values, list | tuple) or not values:
            text = "the list is empty" if values == [] else f"{shown(values)}: expected a list of values"
            hint = "" if isinstance(values, list | dict | None) else f"write it like {key}: [{values}]"
            findings.append(Finding((key,), text, hint))
            continue
        seen: list[tuple[type, Varied]] = []
        for index, entry in enumerate(values):
            if not isinstance(entry, Scalar) and not (key in SECTIONS_TO_VARY and isinstance(entry, dict)):
                inner = next(iter(entry), None) if isinstance(entry, dict) else None
                hint = f"vary its values by their paths, such as {key}.{inner}" if inner else ""
                findings.append(Finding((key, index), f"{shown(entry)} is not a single value", hint))
            elif (type(entry), entry) in seen:
                findings.append(Finding((key, index), f"{shown(entry)} is listed twice"))
            else:
                seen.append((type(entry), entry))
    if findings:
        raise Unusable(*findings)
    return {key: tuple(values) for key, values in value.items()}


Sweep = Annotated[
    dict[str, tuple[Varied, ...]],
    BeforeValidator(_read_sweep),
    WithJsonSchema(
        {
            "type": "object",
            "properties": {
                section: {"type": "array", "minItems": 1, "items": {"type": ["string", "object"]}}
                for section in SECTIONS_TO_VARY
            },
            "additionalProperties": {
                "type": "array",
                "minItems": 1,
                "items": {"type": ["number", "string", "boolean"]},
            },
            "description": "Values to vary, by their path in this file; every combination is run",
            "examples": [{"replicas": [1, 2, 3], "topology.mobility.speed": ["1 m/s", "5 m/s"]}],
        }
    ),
]


def _read_expectation(value: Any) -> str:
    if not isinstance(value, str) or len(value) > _LONGEST_EXPECTATION:
        raise unusable(f"{shown(value)} is not an expectation", 'write it like "throughput_fps > 1"')
    try:
        parse_expectation(value)
    except ValueError as error:
        raise unusable(str(error)) from None
    return value.strip()


class _ExpectationSchema:
    """Names the metrics that there are, when somebody asks for the schema and not before."""

    def __get_pydantic_json_schema__(self, core: Any, handler: Any) -> dict[str, Any]:
        return {"type": "string", "pattern": pattern(), "examples": ["throughput_fps > 1"]}


ExpectationText = Annotated[
    str,
    BeforeValidator(_read_expectation),
    _ExpectationSchema(),
]


class Experiment(Section):
    """One experiment: a query on a topology, and how to run it."""

    name: Name = Field(examples=["quickstart"])
    topology: Topology = Field(examples=["../topologies/rwp-25.yaml"])
    backend: Literal["sim", "netns", "ssh", "core", "auto"] = Field(
        default="sim", description="auto: netns where this machine permits it, else sim"
    )
    routing: Routing = Field(default=Olsr(), examples=["{protocol: olsr, hello: 2s, hello_validity: 20s}"])
    query: QueryField = Field(examples=["synthetic_chain"])
    replicas: Replicas = 1
    placement: Placement = RandomPlacement()
    switching: Switching = Switching()
    delivery: Delivery = Delivery()
    duration: PositiveDuration = Field(examples=["120s"], description="Measured time, after the warm-up")
    warmup: Duration = Field(default=0.0, description="Time before the measurement starts")
    seed: Seed = 1
    sweep: Sweep = Field(default={})
    faults: tuple[Fault, ...] = Field(
        default=(),
        description="What goes wrong during the measurement",
        examples=[[{"at": "40s", "for": "10s", "crash": {"operator": "detect", "replica": 0}}]],
    )
    expect: tuple[ExpectationText, ...] = ()
    timeouts: Timeouts = Timeouts()
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
    def _patient_with_other_machines(cls, value: Any) -> Any:
        if not isinstance(value, dict) or value.get("backend") not in REMOTE:
            return value
        stated = value.get("timeouts", {})
        return {**value, "timeouts": {**_REMOTE_TIMEOUTS, **stated}} if isinstance(stated, dict) else value

    def dataflow(self) -> Query:
        return self.query.build()

    def rule(self) -> Rule:
        switching = self.switching
        return Rule(switching.policy, threshold_of(switching.threshold), switching.exponent, self.seed)

    def resolved(self) -> dict[str, Any]:
        """The whole experiment as plain values in base units, defaults and topology included."""
        return self.model_dump(mode="json")

    @field_serializer("query")
    def _whole_query(self, query: Section) -> dict[str, Any]:
        return query.model_dump(mode="json")
