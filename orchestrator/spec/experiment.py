"""The experiment file as a value: what runs where, for how long, and what is varied."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema, field_serializer

from node_agent.model.query import Query
from orchestrator.spec.base import Name, Section, Seed
from orchestrator.spec.expectations import METRICS, OPERATORS, parse_expectation
from orchestrator.spec.problems import Finding, Unusable, shown, unusable
from orchestrator.spec.query import QueryField
from orchestrator.spec.topology import Topology
from orchestrator.spec.units import Duration, PositiveDuration

MAX_REPLICAS = 1000
_LONGEST_EXPECTATION = 100
Scalar = int | float | str | bool


def _read_replicas(value: Any) -> int | dict[str, int]:
    counts = value if isinstance(value, dict) else {"": value}
    findings = []
    for name, count in counts.items():
        at = (name,) if name else ()
        if isinstance(count, bool) or not isinstance(count, int):
            text = f"{shown(count)} is not a number of replicas"
            findings.append(Finding(at, text, "write replicas: 3, or one number for each operator"))
        elif not 1 <= count <= MAX_REPLICAS:
            findings.append(Finding(at, f"{count} replicas: between 1 and {MAX_REPLICAS} are supported"))
    if findings:
        raise Unusable(*findings)
    return value  # type: ignore[no-any-return]


Replicas = Annotated[
    int | dict[str, int],
    BeforeValidator(_read_replicas),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": 1, "maximum": MAX_REPLICAS},
                {
                    "type": "object",
                    "additionalProperties": {"type": "integer", "minimum": 1, "maximum": MAX_REPLICAS},
                },
            ],
            "description": "k for every operator between sources and sinks, or one k for each by name",
        }
    ),
]


Metric = Literal["etx", "hops"]


class Routing(Section):
    """Where the costs of links come from, and what they count: transmissions that it takes, or links."""

    protocol: Literal["ground_truth"] = "ground_truth"
    metric: Metric = "etx"


class RandomPlacement(Section):
    """Replicas on nodes drawn at random; without a seed of its own it follows the experiment's."""

    policy: Literal["random"] = "random"
    seed: Seed | None = None


class ExplicitPlacement(Section):
    """Nodes by operator, one for each replica; what is listed beyond k waits for a larger k."""

    policy: Literal["explicit"]
    nodes: dict[str, tuple[str, ...]] = Field(examples=["{camera: [n01], detect: [n03, n07], screen: [n05]}"])


def _read_placement(value: Any) -> Any:
    unsaid = isinstance(value, dict) and "policy" not in value and "nodes" not in value
    return {"policy": "random", **value} if unsaid else value


Placement = Annotated[
    RandomPlacement | ExplicitPlacement, Field(discriminator="policy"), BeforeValidator(_read_placement)
]


class Switching(Section):
    """When a replica sends to another downstream replica than before."""

    policy: Literal["shortest_path", "static"] = "shortest_path"
    period: PositiveDuration = 2.0
    threshold: Annotated[float, Field(strict=True, ge=0, le=1e6, allow_inf_nan=False)] = 0.0


class Timeouts(Section):
    """How long each phase may take on the wall clock."""

    up: PositiveDuration = 60.0
    converge: PositiveDuration = 60.0
    stop: PositiveDuration = 30.0
    collect: PositiveDuration = 60.0
    down: PositiveDuration = 30.0


def _read_sweep(value: Any) -> dict[str, tuple[Scalar, ...]]:
    if not isinstance(value, dict):
        raise unusable(f"{shown(value)} is not a mapping of what to vary", "sweep: {replicas: [1, 2, 3]}")
    findings = []
    for key, values in value.items():
        if not isinstance(values, list | tuple) or not values:
            text = "the list is empty" if values == [] else f"{shown(values)}: expected a list of values"
            hint = "" if isinstance(values, list | dict | None) else f"write it like {key}: [{values}]"
            findings.append(Finding((key,), text, hint))
            continue
        seen: set[tuple[type, Scalar]] = set()
        for index, entry in enumerate(values):
            if not isinstance(entry, Scalar):
                findings.append(Finding((key, index), f"{shown(entry)} is not a single value"))
            elif (type(entry), entry) in seen:
                findings.append(Finding((key, index), f"{shown(entry)} is listed twice"))
            else:
                seen.add((type(entry), entry))
    if findings:
        raise Unusable(*findings)
    return {key: tuple(values) for key, values in value.items()}


Sweep = Annotated[
    dict[str, tuple[Scalar, ...]],
    BeforeValidator(_read_sweep),
    WithJsonSchema(
        {
            "type": "object",
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


ExpectationText = Annotated[
    str,
    BeforeValidator(_read_expectation),
    WithJsonSchema(
        {
            "type": "string",
            "pattern": rf"^\s*({'|'.join(METRICS)})\s*({'|'.join(OPERATORS)})\s*[-+0-9.eE]+\s*$",
            "examples": ["throughput_fps > 1"],
        }
    ),
]


class Experiment(Section):
    """One experiment: a query on a topology, and how to run it."""

    name: Name = Field(examples=["quickstart"])
    topology: Topology = Field(examples=["../topologies/rwp-25.yaml"])
    backend: Literal["sim", "netns"] = "sim"
    routing: Routing = Routing()
    query: QueryField = Field(examples=["synthetic_chain"])
    replicas: Replicas = 1
    placement: Placement = RandomPlacement()
    switching: Switching = Switching()
    duration: PositiveDuration = Field(examples=["120s"], description="Measured time, after the warm-up")
    warmup: Duration = Field(default=0.0, description="Time before the measurement starts")
    seed: Seed = 1
    sweep: Sweep = Field(default={})
    expect: tuple[ExpectationText, ...] = ()
    timeouts: Timeouts = Timeouts()

    def dataflow(self) -> Query:
        return self.query.build()

    def replica_counts(self) -> dict[str, int]:
        """k of each operator, in the query's order; sources and sinks have one."""
        query = self.dataflow()
        inner = frozenset(query.inner())
        asked = self.replicas if isinstance(self.replicas, dict) else dict.fromkeys(inner, self.replicas)
        return {name: asked.get(name, 1) if name in inner else 1 for name in query.names()}

    def resolved(self) -> dict[str, Any]:
        """The whole experiment as plain values in base units, defaults and topology included."""
        return self.model_dump(mode="json")

    @field_serializer("query")
    def _whole_query(self, query: Section) -> dict[str, Any]:
        return query.model_dump(mode="json")
