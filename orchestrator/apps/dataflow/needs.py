"""What the operators of a dataflow need on their nodes, besides what every agent needs."""

from collections.abc import Iterator
from pathlib import Path

from packaging.utils import canonicalize_name

from node_agent.apps.dataflow.model.plan import DeploymentPlan
from node_agent.apps.dataflow.model.query import OperatorSpec, Query
from node_agent.apps.dataflow.operators.registry import OPERATORS
from node_agent.apps.dataflow.query.load import load_for
from orchestrator.apps.dataflow.faces.needs import FACES, parts_of
from orchestrator.deployment.foreign_code import dependencies, imported, providing
from orchestrator.deployment.needs import AGENT, PYROUTE2
from orchestrator.planning.parts import Part


def parts_for(plan: DeploymentPlan, node: str) -> Iterator[Part]:
    """Raises QueryError if the query's own file cannot be imported."""
    operators = [plan.query.operator(name) for name in plan.operators_on(node)]
    for operator in operators:
        yield from parts_of(operator)
    yield from _of_foreign_code(plan.query, operators)


def _of_foreign_code(query: Query, operators: list[OperatorSpec]) -> Iterator[Part]:
    """What the query's file imports, and the packages that bring operators."""
    load_for(query)
    if query.module is not None:  # every agent imports it
        for name in imported(Path(query.module)):
            yield from providing(name, (*AGENT, PYROUTE2, *FACES))
    for kind in sorted({operator.kind for operator in operators}):
        entry = OPERATORS.installed(kind)
        if entry is not None and entry.dist is not None:
            yield Part(canonicalize_name(entry.dist.name), entry.module)
            yield from dependencies(canonicalize_name(entry.dist.name))
