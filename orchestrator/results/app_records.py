"""Reads the records of one application from a run's directory: those that their nodes can have written."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from node_agent.apps.records import record_format
from node_agent.model.checked import Refused
from node_agent.telemetry.belief import AppScopes, writers
from node_agent.telemetry.segment_files import lines_in, open_regular, segment_names
from orchestrator.clocks.correction import ahead_ns, clocks_in
from orchestrator.errors import BadInput
from orchestrator.runs.files import read_object
from orchestrator.runs.manifest import MOVING_FROM, apps_in
from orchestrator.runs.run_directory import RunDirectory

NS = 1e9
T = TypeVar("T")


class Seen(NamedTuple):
    """``t_ns``: corrected by the offset of the node's clock."""

    t_ns: int
    node: str
    record: Any


@dataclass(frozen=True)
class AppRecords:
    """``records``: in order of time. ``zero_ns``, ``last_ns``: of the run's first and last record.

    ``opened_ns``: when sources opened.
    """

    records: tuple[Seen, ...]
    zero_ns: int
    last_ns: int
    opened_ns: int


def document_of(directory: RunDirectory, app: str, recorded_in: Callable[[Mapping[str, Any]], T | None]) -> T:
    """What ``recorded_in`` reads from the manifest. Raises BadInput if there is no plan of it."""
    entry = apps_in(read_object(directory.manifest)).get(app)
    recorded = None if entry is None else recorded_in(entry.document)
    if recorded is None:
        raise BadInput(f"run {directory.id} has no plan of {app} in manifest.json: did it begin?")
    return recorded


def read_records(directory: RunDirectory, app: str, scopes: AppScopes) -> AppRecords:
    manifest = read_object(directory.manifest)
    clocks = clocks_in(manifest)
    run, format = str(manifest.get("run") or directory.id), record_format()
    nodes = sorted(path.name for path in directory.nodes.glob("*"))
    found: list[Seen] = []
    times: list[int] = []
    for node, writer in writers(run, nodes, format, {app: scopes}).items():
        folder = directory.segments(node)
        clock = clocks.get(node, ())
        first = last = None
        for line in chain.from_iterable(_lines(folder / str(name)) for name in segment_names(folder)):
            try:
                record = format.decode(line)
            except Refused:
                continue  # torn or damaged lines: the verdict counts them
            if format.flaw(record) or writer.refusal(record):
                continue
            t_ns = record.t_ns - ahead_ns(clock, record.t_ns)
            first = t_ns if first is None else min(first, t_ns)
            last = t_ns if last is None else max(last, t_ns)
            if record.app == app:
                found.append(Seen(t_ns, node, record))
        times += [each for each in (first, last) if each is not None]
    zero_ns, last_ns = min(times, default=0), max(times, default=0)
    opened = manifest.get(MOVING_FROM)
    opened_ns = opened if isinstance(opened, int) and zero_ns <= opened <= last_ns else zero_ns
    return AppRecords(tuple(sorted(found, key=_by_time)), zero_ns, last_ns, opened_ns)


def _by_time(seen: Seen) -> int:
    return seen.t_ns


def _lines(path: Path) -> Iterator[bytes]:
    with suppress(OSError), open_regular(path) as file:
        yield from (line for line in lines_in(file) if line is not None)
