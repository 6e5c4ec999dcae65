"""What a run's records are worth: how complete they are, what was refused and by whom, what nobody made.

One pass over the segments, right after the run and whenever more of them have arrived.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from node_agent.apps.dataflow.model.plan import DeploymentPlan
from node_agent.model.intervals import Intervals
from node_agent.model.telemetry import RefusalCount, TupleDelivered, TupleEmitted
from node_agent.telemetry.belief import WORDS, writers
from node_agent.telemetry.records import tag_of
from node_agent.telemetry.segments import Completeness, inspect
from orchestrator.apps.dataflow.recorded import deployment_in
from orchestrator.runs.files import read_lines
from orchestrator.runs.manifest import RecordedApp
from orchestrator.runs.refused import MOST_REFUSED, ORCHESTRATOR, RECORD, RefusedBy
from orchestrator.runs.run_directory import RunDirectory

_EMITTED, _DELIVERED, _REFUSED = tag_of(TupleEmitted), tag_of(TupleDelivered), tag_of(RefusalCount)
_STREAMS = (_EMITTED, _DELIVERED)
MOST_SPANS = 16_384
LONGEST = 200
"""Characters of what a node calls what it refused."""


class Examined(Struct, frozen=True):
    """``never_emitted``: by node, tuples that it delivered and that nobody says to have emitted."""

    completeness: dict[str, Completeness]
    refused: tuple[RefusedBy, ...] = ()
    never_emitted: dict[str, int] = {}


def examine(
    directory: RunDirectory, nodes: Sequence[str], apps: Mapping[str, RecordedApp], run: str = ""
) -> Examined:
    """``apps``: none if the run did not get so far; then no record can be held against them.

    ``run``: what the records call their run, if not as its directory is called now.
    """
    plan = next((deployment_in(app.document) for app in apps.values()), None)
    known = writers(run or directory.id, nodes, plan) if plan is not None else {}
    events = read_lines(directory.events)
    starts = dict.fromkeys(nodes, 1) | agent_starts(events) if events else {}
    notes = {node: _Notes() for node in nodes}
    completeness = {
        node: inspect(directory.segments(node), known.get(node), starts.get(node, 0), notes[node].take)
        for node in nodes
    }
    return Examined(
        completeness,
        tuple(_refused(notes, completeness)),
        _never_emitted(notes, completeness, plan) if plan is not None else {},
    )


def agent_starts(events: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """How often the run started each agent that it started more than once, by its events."""
    starts: dict[str, int] = {}
    for event in events:
        match event:
            case {"kind": "fault", "deed": "restart", "node": str(node)}:
                starts[node] = starts.get(node, 1) + 1
    return starts


class _Notes:
    """What one node's records tell that is needed here, in bounded memory.

    Where a stream has more than ``MOST_SPANS`` gaps, the lowest are closed: deliveries of what nobody emitted
    are still found, since whoever makes a stream leaves no gaps in it.
    """

    def __init__(self) -> None:
        self.emitted: dict[str, Intervals] = {}
        self.delivered: dict[str, Intervals] = {}
        self.refusals: dict[tuple[int, str, str, str], int] = {}

    def take(self, record: Any) -> None:
        kind = record.kind
        if kind in _STREAMS:
            streams = self.emitted if kind == _EMITTED else self.delivered
            positions = streams.get(record.origin)
            if positions is None:
                positions = streams[record.origin] = Intervals()
            positions.add(record.tau, record.tau + (record.tuples or 1) - 1)
            if len(positions) > MOST_SPANS:
                positions.fill(MOST_SPANS // 2)
        elif kind == _REFUSED:
            # Each counts since its agent's start: the highest is the last.
            what, source, reason = (each[:LONGEST] for each in (record.what, record.source, record.reason))
            key = record.boot, what, source, reason
            if key in self.refusals or len(self.refusals) < 16 * MOST_REFUSED:
                self.refusals[key] = max(record.count, self.refusals.get(key, 0))


def _refused(notes: Mapping[str, _Notes], completeness: Mapping[str, Completeness]) -> Iterable[RefusedBy]:
    for node, noted in notes.items():
        counts: dict[tuple[str, str, str], int] = {}
        for (_, *key), count in noted.refusals.items():
            what, source, reason = key
            counts[what, source, reason] = counts.get((what, source, reason), 0) + count
        yield from (RefusedBy(node, *key, count) for key, count in counts.items())
    for node, found in completeness.items():
        for reason, count in found.reasons.items():
            if reason in WORDS:
                yield RefusedBy(ORCHESTRATOR, RECORD, node, reason, count)


def _never_emitted(
    notes: Mapping[str, _Notes], completeness: Mapping[str, Completeness], plan: DeploymentPlan
) -> dict[str, int]:
    """Only of streams all of whose makers' logs are whole: a maker that died may not have told."""
    makers: dict[str, list[str]] = {}
    for replica in plan.replicas:
        for origin in plan.query.makes(replica.operator):
            makers.setdefault(origin, []).append(replica.node)
    emitted: dict[str, list[Intervals]] = {}
    for noted in notes.values():
        for origin, positions in noted.emitted.items():
            emitted.setdefault(origin, []).append(positions)
    counts: dict[str, int] = {}
    for node, noted in notes.items():
        for origin, delivered in noted.delivered.items():
            if not all(node in completeness and completeness[node].complete for node in makers[origin]):
                continue
            for first, last in (span for known in emitted.get(origin, ()) for span in known):
                delivered.discard(first, last)
            if beyond := sum(last - first + 1 for first, last in delivered):
                counts[node] = counts.get(node, 0) + beyond
    return counts
