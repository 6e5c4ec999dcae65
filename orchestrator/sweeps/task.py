"""What an executor does for one cell: runs it in a directory of its own and returns that directory as bytes.

It plans the run from the cell's own files, as `rove run` does with the spec.yaml of a run, and compares its
plan with the driver's: executors whose packages plan in another way are found out before they measure.
"""

import asyncio
import hashlib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestrator.backends.create import create_backend
from orchestrator.errors import RoveError
from orchestrator.lifecycle.interruption import Interruption
from orchestrator.lifecycle.run import Run, RunOrder
from orchestrator.planning.load import load_checked
from orchestrator.planning.planned import PlannedRun
from orchestrator.planning.semantics import plan_run
from orchestrator.runs import manifest
from orchestrator.runs.files import read_object, write_atomic, write_json
from orchestrator.runs.journal import Journal
from orchestrator.runs.run_directory import RunDirectory
from orchestrator.sweeps.archive import pack

PIECE = 4 * 2**20
"""A result comes back in pieces of this size."""
RUN, ERROR = b"run\n", b"error\n"
"""The first piece says what follows: a run's archive, or why there is none."""


@dataclass(frozen=True)
class CellOrder:
    """What an executor needs to know about a cell. ``place``: where the run's directory will be."""

    run_id: str
    experiment: str
    files: dict[str, bytes]
    factors: dict[str, Any]
    invocation: str
    command: list[str]
    quorum: float
    place: str
    plan: str
    checkout: dict[str, Any] | None


def perform(order: CellOrder, scratch: Path) -> Iterator[bytes]:
    """Runs the cell below ``scratch``, leaves nothing there, and yields the result piece by piece."""
    folder = Path(tempfile.mkdtemp(prefix="rove-cell-", dir=scratch)).resolve()
    try:
        _let_children_import_rove()
        directory = RunDirectory(folder / order.experiment / order.run_id)
        data = _performed(order, directory)
    except RoveError as error:  # not the executor's fault: another one would fail in the same way
        yield ERROR
        yield str(error).encode()
        return
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    yield RUN
    for begin in range(0, len(data), PIECE):
        yield data[begin : begin + PIECE]


def plan_digest(run: PlannedRun) -> str:
    """Returns a digest of the plan that does not depend on where files are."""
    return hashlib.sha256(json.dumps(_without_folders(run.record()), sort_keys=True).encode()).hexdigest()


def _performed(order: CellOrder, directory: RunDirectory) -> bytes:
    directory.path.mkdir(parents=True)
    for name, content in order.files.items():
        path = directory.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, content)
    run = _planned(order, directory)
    wanted = RunOrder(run, order.factors, order.invocation, order.command, order.quorum)
    with Journal.create(directory.journal) as journal:
        whole = Run(wanted, directory, journal, create_backend, Interruption(), lambda phase, done: None)
        asyncio.run(whole.execute())
    if document := read_object(directory.manifest):
        moved = _moved(document, str(directory.path), order.place)
        write_json(directory.manifest, {**moved, manifest.CHECKOUT: order.checkout})
    return pack(directory.path)


def _planned(order: CellOrder, directory: RunDirectory) -> PlannedRun:
    run, findings = plan_run(load_checked(directory.spec))
    if run is None or findings:
        raise RoveError(f"an executor cannot plan it: {'; '.join(finding.message for finding in findings)}")
    if plan_digest(run) != order.plan:
        raise RoveError(
            "an executor plans it in another way than this machine: give both the same versions of Python's"
            " packages (docs/sweeps.md)"
        )
    return run


def _let_children_import_rove() -> None:
    """The simulator is a process of its own, which has to find the code that Spark brought here."""
    os.environ["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)


def _moved(value: Any, here: str, there: str) -> Any:
    """Names files where they will be."""
    match value:
        case str():
            return value.replace(here, there)
        case dict():
            return {key: _moved(each, here, there) for key, each in value.items()}
        case list():
            return [_moved(each, here, there) for each in value]
    return value


def _without_folders(value: Any) -> Any:
    match value:
        case str() if value.startswith("/"):
            return ""
        case dict():
            return {key: _without_folders(each) for key, each in value.items()}
        case list() | tuple():
            return [_without_folders(each) for each in value]
    return value
