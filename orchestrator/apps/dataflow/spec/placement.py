"""How many replicas operators have and where these go: the sections ``replicas`` and ``placement``."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from orchestrator.spec.base import Section, Seed
from orchestrator.spec.problems import Finding, Unusable, shown

AUTO: Literal["auto"] = "auto"
MAX_REPLICAS = 1000
_DEFAULT = "random"

ReplicaCount = int | Literal["auto"]


def _read_replicas(value: Any) -> ReplicaCount | dict[str, ReplicaCount]:
    counts = value if isinstance(value, dict) else {"": value}
    findings = []
    for name, count in counts.items():
        at = (name,) if name else ()
        if count == AUTO:
            continue
        if isinstance(count, bool) or not isinstance(count, int):
            text = f"{shown(count)} is not a number of replicas"
            findings.append(Finding(at, text, "write replicas: 3, replicas: auto, or one for each operator"))
        elif not 1 <= count <= MAX_REPLICAS:
            findings.append(Finding(at, f"{count} replicas: between 1 and {MAX_REPLICAS} are supported"))
    if findings:
        raise Unusable(*findings)
    return value  # type: ignore[no-any-return]


_COUNT_SCHEMA: list[dict[str, Any]] = [
    {"type": "integer", "minimum": 1, "maximum": MAX_REPLICAS},
    {"const": AUTO},
]
Replicas = Annotated[
    ReplicaCount | dict[str, ReplicaCount],
    BeforeValidator(_read_replicas),
    WithJsonSchema(
        {
            "anyOf": [
                *_COUNT_SCHEMA,
                {"type": "object", "additionalProperties": {"anyOf": _COUNT_SCHEMA}},
            ],
            "description": "k for every operator between sources and sinks, or one k for each by name; "
            "auto: derived from size, density and mobility",
        }
    ),
]


class Drawn(Section):
    """Placement by an order of the nodes; without a seed of its own it follows the experiment's."""

    seed: Seed | None = None


class RandomPlacement(Drawn):
    """Replicas on nodes drawn at random, one on each."""

    policy: Literal["random"] = "random"


class SpreadPlacement(Drawn):
    """Replicas of an operator far from each other, but not out of the way; one on each node."""

    policy: Literal["spread"]


class ColocatePlacement(Drawn):
    """Replicas of consecutive operators on the same nodes, as far as the nodes' CPUs allow."""

    policy: Literal["colocate"]


class ExplicitPlacement(Section):
    """Nodes by operator, one for each replica; what is listed beyond k waits for a larger k."""

    policy: Literal["explicit"]
    nodes: dict[str, tuple[str, ...]] = Field(examples=["{camera: [n01], detect: [n03, n07], screen: [n05]}"])


def _read_placement(value: Any) -> Any:
    unsaid = isinstance(value, dict) and "policy" not in value and "nodes" not in value
    return {"policy": _DEFAULT, **value} if unsaid else value


Placement = Annotated[
    RandomPlacement | SpreadPlacement | ColocatePlacement | ExplicitPlacement,
    Field(discriminator="policy"),
    BeforeValidator(_read_placement),
]
