"""Examines a run's records: how complete they are, what was refused and by whom, what nobody emitted.

It reads the segments once, right after the run and again whenever more of them have arrived.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from node_agent.apps.records import record_format
from node_agent.model.telemetry import ExtensionFailed, RefusalCount
from node_agent.telemetry.belief import OLD_APP, writers
from node_agent.telemetry.kinds import tag_of
from node_agent.telemetry.segments import Completeness, inspect
from orchestrator.planning.application import Examiner, application
from orchestrator.runs.events import fault_in
from orchestrator.runs.failed_extensions import FailedExtension, doubts_of
from orchestrator.runs.files import read_lines
from orchestrator.runs.manifest import RecordedApp
from orchestrator.runs.outages import CRASH, ENDED_BY
from orchestrator.runs.refused import MOST_REFUSED, ORCHESTRATOR, RECORD, RefusedBy
from orchestrator.runs.run_directory import RunDirectory
from orchestrator.spec.application import APPLICATIONS

_REFUSED = tag_of(RefusalCount)
_FAILED = tag_of(ExtensionFailed)
LONGEST = 200
"""Limits the name, in characters, that a node gives to what it refused."""


class Examined(Struct, frozen=True):
    """``never_emitted``: by node, how much it delivered that nobody recorded as emitted, of all applications.

    ``failed``: extensions of other authors that failed on nodes.
    """

    completeness: dict[str, Completeness]
    refused: tuple[RefusedBy, ...] = ()
    never_emitted: dict[str, int] = {}
    failed: tuple[FailedExtension, ...] = ()

    @property
    def doubts(self) -> list[str]:
        """Returns the reasons in the records why the run may not be valid."""
        return doubts_of(self.failed)


def examine(
    directory: RunDirectory, nodes: Sequence[str], apps: Mapping[str, RecordedApp], run: str = ""
) -> Examined:
    """Reads all records of a run.

    ``apps``: empty if the run was not planned; then records are not checked against applications.

    ``run``: the run's id in the records, if the directory has another name now.
    """
    format = record_format()
    examiners = examiners_of(apps)
    scopes = {name: examiner.scopes for name, examiner in examiners.items()}
    known = writers(run or directory.id, nodes, format, scopes) if scopes else {}
    events = read_lines(directory.events)
    starts = dict.fromkeys(nodes, 1) | agent_starts(events) if events else {}
    notes = {node: _Notes(node, examiners) for node in nodes}
    completeness = {
        node: inspect(
            directory.segments(node), known.get(node), starts.get(node, 0), notes[node].take, format
        )
        for node in nodes
    }
    never_emitted: Counter[str] = Counter()
    for examiner in examiners.values():
        never_emitted.update(examiner.never_emitted(completeness))
    return Examined(
        completeness,
        tuple(_refused(notes, completeness)),
        dict(never_emitted),
        tuple(failed for node, noted in notes.items() for failed in noted.failed_extensions(node)),
    )


def examiners_of(apps: Mapping[str, RecordedApp]) -> dict[str, Examiner]:
    """Returns examiners of those applications that are known here and whose plans can be read."""
    found = {
        name: application(app.kind).examiner(app.document)
        for name, app in apps.items()
        if app.kind in APPLICATIONS
    }
    return {name: examiner for name, examiner in found.items() if examiner is not None}


def agent_starts(events: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Counts from the run's events how often each agent was started; agents started once are left out."""
    starts: dict[str, int] = {}
    for event in events:
        match fault_in(event):
            case ("restart", node):
                starts[node] = starts.get(node, 1) + 1
    return starts


def agent_crashes(events: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Counts from the run's events how often each agent was killed on purpose. A second fault that hits a
    node whose agent is down already kills nothing.
    """
    kills: dict[str, int] = {}
    down: set[str] = set()
    for event in events:
        match fault_in(event):
            case (action, node) if action == CRASH and node not in down:
                kills[node] = kills.get(node, 0) + 1
                down.add(node)
            case (action, node) if action == ENDED_BY[CRASH]:
                down.discard(node)
    return kills


class _Notes:
    """Collects from one node's records what the examination needs, in bounded memory."""

    def __init__(self, node: str, examiners: Mapping[str, Examiner]) -> None:
        self.refusals: dict[tuple[int, str, str, str], int] = {}
        self.failed: dict[tuple[int, str, str], FailedExtension] = {}
        self._node = node
        self._examiners = examiners

    def take(self, record: Any) -> None:
        if record.kind == _REFUSED:
            # Counters grow from the agent's start: the highest value is the last one.
            what, source, reason = (each[:LONGEST] for each in (record.what, record.source, record.reason))
            key = record.boot, what, source, reason
            if key in self.refusals or len(self.refusals) < 16 * MOST_REFUSED:
                self.refusals[key] = max(record.count, self.refusals.get(key, 0))
        elif record.kind == _FAILED:
            what, name, place, error = (
                each[:LONGEST] for each in (record.what, record.name, record.place, record.error)
            )
            if (record.boot, what, name) in self.failed or len(self.failed) < MOST_REFUSED:
                failed = FailedExtension(record.node, what, name, place, error, record.count, record.left_out)
                self.failed[record.boot, what, name] = failed
        elif (examiner := self._examiners.get(record.app or OLD_APP)) is not None:
            examiner.take(self._node, record)

    def failed_extensions(self, node: str) -> list[FailedExtension]:
        """Adds the failures over all boots of the agent; keeps the last error of each extension."""
        added: dict[tuple[str, str], FailedExtension] = {}
        for (_, what, name), each in self.failed.items():
            before = added.get((what, name))
            count = each.count + (before.count if before is not None else 0)
            left_out = each.left_out or (before is not None and before.left_out)
            added[what, name] = replace(each, node=node, count=count, left_out=left_out)
        return list(added.values())


def _refused(notes: Mapping[str, _Notes], completeness: Mapping[str, Completeness]) -> Iterable[RefusedBy]:
    for node, noted in notes.items():
        counts: dict[tuple[str, str, str], int] = {}
        for (_, *key), count in noted.refusals.items():
            what, source, reason = key
            counts[what, source, reason] = counts.get((what, source, reason), 0) + count
        yield from (RefusedBy(node, *key, count) for key, count in counts.items())
    words = record_format().words
    for node, found in completeness.items():
        for reason, count in found.reasons.items():
            if reason in words:
                yield RefusedBy(ORCHESTRATOR, RECORD, node, reason, count)
