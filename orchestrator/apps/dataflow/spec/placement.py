"""Defines the sections ``replicas`` and ``placement``:
how many replicas operators have, and on which nodes.
"""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationInfo, WithJsonSchema

from node_agent.extensions import Registry
from orchestrator.apps.dataflow.planning.placement_policy import (
    WHAT,
    Drawn,
    PlacementPolicy,
    checked_placement,
)
from orchestrator.spec.base import Section
from orchestrator.spec.problems import Finding, Unusable, shown
from orchestrator.spec.registered import Registered

AUTO: Literal["auto"] = "auto"
MAX_REPLICAS = 1000
DEFAULT = "random"

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


class RandomPlacement(Drawn):
    """Replicas on nodes drawn at random, one on each."""

    policy: Literal["random"] = "random"


class SpreadPlacement(Drawn):
    """Replicas of an operator far from each other, but not out of the way; one on each node."""

    policy: Literal["spread"]


class ColocatePlacement(Drawn):
    """Replicas of consecutive operators on the same nodes, as far as the nodes' CPUs allow."""

    policy: Literal["colocate"]


class NearPlacement(Drawn):
    """Replicas on the nodes of sources and sinks, as far as their CPUs allow, or else between them."""

    policy: Literal["near"]


class ExplicitPlacement(Section):
    """Nodes by operator, one for each replica; nodes beyond k are used by a larger k."""

    policy: Literal["explicit"]
    nodes: dict[str, tuple[str, ...]] = Field(examples=["{camera: [n01], detect: [n03, n07], screen: [n05]}"])


_HERE = "orchestrator.apps.dataflow.planning.placements"
PLACEMENT_POLICIES: Registry[PlacementPolicy] = Registry(
    WHAT,
    "rove.placement_policies",
    checked_placement,
    {
        "random": f"{_HERE}.at_random:POLICY",
        "spread": f"{_HERE}.spread:POLICY",
        "colocate": f"{_HERE}.colocate:POLICY",
        "near": f"{_HERE}.near:POLICY",
        "explicit": f"{_HERE}.explicit:POLICY",
    },
)


class _Registered(Registered):
    def read(self, value: Any, info: ValidationInfo) -> Section:
        # A file that lists nodes without a policy may mean explicit, or be wrong.
        if isinstance(value, dict) and "policy" not in value and "nodes" not in value:
            value = {"policy": DEFAULT, **value}
        return super().read(value, info)


Placement = Annotated[
    Section, _Registered(PLACEMENT_POLICIES, "policy", section=lambda policy: policy.section)
]
