"""A run's own files on their way to a node: galleries, videos, pictures, the query's Python file."""

import io
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, get_type_hints

from msgspec import structs

from node_agent.apps.dataflow.model.plan import DeploymentPlan
from node_agent.apps.dataflow.model.query import OperatorSpec
from node_agent.apps.dataflow.operators.registry import OPERATORS
from node_agent.apps.dataflow.query.load import load_for
from orchestrator.apps.dataflow.faces.enrolment import PICTURES
from orchestrator.apps.dataflow.spec.named_path import what_it_names
from orchestrator.deployment.contents import Entry
from orchestrator.deployment.deploy import Deployed, ask
from orchestrator.deployment.layers import write_archive
from orchestrator.ssh.connection import TRANSFER_S, Connection

FOLDER = "files"
SMALL = 1 << 20
"""Files up to this size go together; larger ones each by itself, and are resumed where they broke off."""
TOGETHER = 16 << 20

Content = bytes | Path


class Shipment(NamedTuple):
    """``files``: name in the place → file here. ``plan`` names them as the node will."""

    plan: DeploymentPlan
    files: dict[str, Path]


def shipped(plan: DeploymentPlan, node: str, place: str) -> Shipment:
    """What the replicas on ``node`` read of files that are here; ``place``: absolute, on the node.

    Paths that lead to nothing here are the node's own, as are devices and relative ones. Raises QueryError.
    """
    load_for(plan.query)
    names: dict[Path, str] = {}

    def moved(path: Path) -> str:
        # Each in a folder of its own: names are kept, because they are told, and are those of modules.
        return f"{place}/{names.setdefault(path, f'{FOLDER}/{len(names)}/{path.name}')}"

    here = {replica.operator for replica in plan.on(node)}
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


async def put(connection: Connection, deployed: Deployed, place: str, files: Mapping[str, Content]) -> None:
    """Into ``place``, which is made if need be: for the user's eyes only, each file whole or not there.

    Raises DiskFull, TransferBroken, Unreachable, CannotDeploy.
    """
    large = {name: file for name, file in files.items() if isinstance(file, Path) and _size(file) > SMALL}
    folders = sorted({name.rpartition("/")[0] for name in large})
    for batch in batches({name: file for name, file in files.items() if name not in large}):
        packed = io.BytesIO()
        digest, _ = write_archive(packed, (Entry(name, content) for name, content in batch.items()))
        order = {"do": "put", "rove": deployed.rove, "place": place, "folders": folders, "digest": digest}
        await ask(connection, deployed.python, order, TRANSFER_S, packed.getvalue())
    for name, file in large.items():
        await connection.upload(file, f"{place}/{name}")


def batches(files: Mapping[str, Content]) -> Iterator[dict[str, Content]]:
    """At least one, and none that is too large to be held in memory."""
    batch: dict[str, Content] = {}
    size = 0
    for name, content in files.items():
        if batch and size + _size(content) > TOGETHER:
            yield batch
            batch, size = {}, 0
        batch[name] = content
        size += _size(content)
    yield batch


def _size(content: Content) -> int:
    return len(content) if isinstance(content, bytes) else content.stat().st_size
