"""The files of a dataflow on their way to a node: galleries, videos, pictures, the query's Python file."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, get_type_hints

from msgspec import structs

from node_agent.apps.dataflow.model.plan import DeploymentPlan
from node_agent.apps.dataflow.model.query import OperatorSpec
from node_agent.apps.dataflow.operators.registry import OPERATORS
from node_agent.apps.dataflow.query.load import load_for
from node_agent.extensions.files import is_reference, split_reference
from orchestrator.apps.dataflow.faces.enrolment import PICTURES
from orchestrator.apps.dataflow.spec.named_path import what_it_names

FOLDER = "files"
CODE = "extensions/switching"


class Shipment(NamedTuple):
    """``files``: name in the place → file here. ``plan`` names them as the node will."""

    plan: DeploymentPlan
    files: dict[str, Path]


def shipped(plan: DeploymentPlan, node: str, place: str, folder: str = FOLDER) -> Shipment:
    """What the replicas on ``node`` read of files that are here; ``place``: absolute, on the node.

    Paths that lead to nothing here are the node's own, as are devices and relative ones. Raises QueryError.
    """
    load_for(plan.query)
    names: dict[Path, str] = {}

    def moved(path: Path) -> str:
        # Each in a folder of its own: names are kept, because people see them, and modules are named by them.
        return f"{place}/{names.setdefault(path, f'{folder}/{len(names)}/{path.name}')}"

    here = plan.deployed_on(node)
    operators = []
    for operator in plan.query.operators:
        if operator.name in here:
            params = {key: moved(path) for key, path in _named(operator)}
            operator = structs.replace(operator, params={**operator.params, **params})
        operators.append(operator)
    module = plan.query.module
    query = structs.replace(
        plan.query, operators=tuple(operators), module=moved(Path(module)) if module is not None else None
    )
    files = {name: file for path, start in names.items() for name, file in _expanded(path, start)}
    return Shipment(structs.replace(plan, query=query), files)


def _named(operator: OperatorSpec) -> Iterator[tuple[str, Path]]:
    for key, annotation in get_type_hints(OPERATORS[operator.kind].params, include_extras=True).items():
        value: Any = operator.params.get(key)
        if what_it_names(annotation) is not None and isinstance(value, str):
            path = Path(value)
            if path.is_absolute() and (path.is_file() or path.is_dir()):
                yield key, path


def _expanded(path: Path, name: str) -> Iterator[tuple[str, Path]]:
    if path.is_file():
        yield name, path
        return
    for inside in sorted(path.iterdir()):
        if inside.suffix.lower() in PICTURES and inside.is_file():
            yield f"{name}/{inside.name}", inside


def shipped_policy(policy: str, place: str, app: str) -> tuple[str, dict[str, Path]]:
    """A switching policy out of a user's file as the node will name it, and this file by its name there."""
    if not is_reference(policy):
        return policy, {}
    path, attribute = split_reference(policy)
    name = f"{CODE}/{app}/{path.name}"
    return f"{place}/{name}:{attribute}", {name: path}
