"""Defines the keys ``capacity`` and ``costs`` of a topology: the cores of nodes, and the cost of using a
node.
"""

from typing import Annotated, Any

from pydantic import BeforeValidator, WithJsonSchema

from orchestrator.spec.base import NAME_PATTERN
from orchestrator.spec.problems import Finding, Unusable, shown, unusable

MAX_CORES = 1024
MAX_COST = 1e6
_COST_HINT = "write it like costs: {n07: 1.5} or costs: {n07: {cpu: 0.5, battery: 1}}"

Capacity = int | dict[str, int]
NodeCosts = dict[str, float | dict[str, float]]


def _read_capacity(value: Any) -> Capacity:
    cores = value if isinstance(value, dict) else {"": value}
    findings = []
    for node, count in cores.items():
        if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= MAX_CORES:
            text = f"{shown(count)} is not a whole number of cores from 1 to {MAX_CORES}"
            findings.append(
                Finding((node,) if node else (), text, "write capacity: 2, or capacity: {n07: 2}")
            )
    if findings:
        raise Unusable(*findings)
    return value  # type: ignore[no-any-return]


def _read_costs(value: Any) -> NodeCosts:
    if not isinstance(value, dict):
        raise unusable(f"{shown(value)} is not a mapping of nodes to costs", _COST_HINT)
    findings = []
    for node, cost in value.items():
        parts = cost if isinstance(cost, dict) else {"": cost}
        for part, amount in parts.items():
            if isinstance(amount, bool) or not isinstance(amount, int | float) or not 0 <= amount <= MAX_COST:
                text = f"{shown(amount)} is not a cost between 0 and {MAX_COST:,.0f}"
                findings.append(Finding((node, part) if part else (node,), text, _COST_HINT))
    if findings:
        raise Unusable(*findings)
    return value


_CORES_SCHEMA: dict[str, Any] = {"type": "integer", "minimum": 1, "maximum": MAX_CORES}
_COST_SCHEMA: dict[str, Any] = {"type": "number", "minimum": 0, "maximum": MAX_COST}
_BY_NODE: dict[str, Any] = {"type": "object", "propertyNames": {"pattern": f"^{NAME_PATTERN}$"}}

CapacityField = Annotated[
    Capacity,
    BeforeValidator(_read_capacity),
    WithJsonSchema(
        {
            "anyOf": [_CORES_SCHEMA, _BY_NODE | {"additionalProperties": _CORES_SCHEMA}],
            "description": "CPU cores of every node, or of those that have more than one",
            "examples": [2],
        }
    ),
]
CostsField = Annotated[
    NodeCosts,
    BeforeValidator(_read_costs),
    WithJsonSchema(
        _BY_NODE
        | {
            "additionalProperties": {
                "anyOf": [_COST_SCHEMA, {"type": "object", "additionalProperties": _COST_SCHEMA}]
            },
            "description": "What a way through a node costs beyond its links, in units of the routing metric",
            "examples": [{"n07": 1.5, "n08": {"cpu": 0.5, "battery": 1}}],
        }
    ),
]
