"""Reads the decisions that a run has recorded so far, directly from its segments, without an analysis."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from msgspec.structs import replace

from node_agent.apps.dataflow.belief import scopes_of
from node_agent.apps.dataflow.events import RouteDecision, TupleEmitted, TupleReceived
from node_agent.apps.dataflow.model.plan import DeploymentPlan
from node_agent.apps.records import record_format
from node_agent.model.checked import Checked, Refused
from node_agent.telemetry.belief import writers
from node_agent.telemetry.kinds import tag_of
from node_agent.telemetry.records import LONGEST_LINE
from node_agent.telemetry.segment_files import lines_in, open_regular, segment_names
from orchestrator.apps.dataflow.decisions.carried import Carried
from orchestrator.apps.dataflow.decisions.moves import MIGRATION, Told
from orchestrator.apps.dataflow.recorded import deployment_in
from orchestrator.apps.dataflow.setting import KIND
from orchestrator.clocks.correction import ahead_ns, clocks_in
from orchestrator.errors import BadInput
from orchestrator.runs.files import read_object
from orchestrator.runs.manifest import apps_in, span_ns
from orchestrator.runs.outages import Outage, read_outages
from orchestrator.runs.run_directory import RunDirectory

_KIND = f'"kind":"{RouteDecision.__struct_config__.tag}"'.encode()
RECEIVED, EMITTED = tag_of(TupleReceived), tag_of(TupleEmitted)
_MOVED = tuple(f'"kind":"{kind}"'.encode() for kind in (RECEIVED, EMITTED))
_MIGRATION = f'"kind":"{MIGRATION}"'.encode()
NOTHING = Carried()
_decision: Checked[RouteDecision] = Checked(RouteDecision, LONGEST_LINE)


class Recorded(NamedTuple):
    t_ns: int
    node: str
    boot: int
    seq: int
    decision: RouteDecision


Series = tuple[Recorded, ...]
"""The decisions of one replica about one downstream operator, in order of time."""


class History(NamedTuple):
    """Times count from ``zero_ns``, the first record of the run, by the clock of its report."""

    run: str
    plan: DeploymentPlan
    zero_ns: int
    end_ns: int
    series: tuple[Series, ...]
    outages: tuple[Outage, ...] = ()
    carried: Carried = NOTHING
    """What ways carried; empty if that was not asked for."""
    told: tuple[Told, ...] = ()
    """Steps of migrations."""

    def seconds(self, t_ns: int) -> float:
        return (t_ns - self.zero_ns) / 1e9


def read_history(directory: RunDirectory, app: str = KIND, with_carried: bool = False) -> History:
    """``with_carried``: also reads what ways carried, which takes longer."""
    if directory.is_sweep:
        members = ", ".join(member.id for member in directory.members()[:3])
        raise BadInput(f"{directory.id} is a sweep: name one of its runs ({members}, …)")
    manifest = read_object(directory.manifest)
    record = apps_in(manifest).get(app)
    plan = deployment_in(record.document) if record is not None else None
    if plan is None:
        raise BadInput(f"run {directory.id} has no deployment plan in manifest.json: did it begin?")
    clocks = clocks_in(manifest)
    first, last = None, 0
    found: list[Recorded] = []
    carried = Carried()
    told: list[Told] = []
    nodes = sorted(path.name for path in directory.nodes.glob("*"))
    also = (_MIGRATION, *(_MOVED if with_carried else ()))
    run, format = str(manifest.get("run") or directory.id), record_format()
    for node, writer in writers(run, nodes, format, {app: scopes_of(plan)}).items():
        clock = clocks.get(node, ())
        for raw, is_decision in _lines(directory.segments(node), also):
            try:
                envelope = format.decode(raw)
                decision = _decision.decode(raw) if is_decision else None
            except Refused:
                continue  # torn or damaged lines: the verdict counts them
            if format.flaw(envelope) or writer.refusal(envelope):
                continue
            ahead = ahead_ns(clock, envelope.t_ns)
            t_ns = envelope.t_ns - ahead
            first = t_ns if first is None else min(first, t_ns)
            last = max(last, t_ns)
            if with_carried:
                _note(carried, envelope, t_ns)
            if envelope.kind == MIGRATION:
                told.append(_told(envelope, t_ns))
            if decision is not None:
                decision = replace(decision, taken_ns=decision.taken_ns - ahead) if ahead else decision
                found.append(Recorded(t_ns, envelope.node, envelope.boot, envelope.seq, decision))
    if first is None or not (found or plan.moving):
        raise BadInput(f"run {directory.id} has no decisions recorded: nothing was routed in it, or not yet")
    if (span := span_ns(manifest)) is not None:
        # As in the analysis: a node that records wrong times does not move the others' zero.
        first, last = max(first, span[0]), min(last, span[1])
    outages = read_outages(directory.events)
    return History(directory.id, plan, first, last, _series(plan, found), outages, carried, tuple(told))


def _series(plan: DeploymentPlan, found: list[Recorded]) -> tuple[Series, ...]:
    order = {replica.id: index for index, replica in enumerate(plan.replicas)}

    def owner(recorded: Recorded) -> tuple[int, str, str]:
        decision = recorded.decision
        return (order.get(decision.replica, len(order)), decision.replica, decision.downstream)

    once = {(r.node, r.boot, r.seq): r for r in found}.values()
    ordered = sorted(once, key=lambda r: (owner(r), r.t_ns, r.boot, r.seq))
    return tuple(tuple(group) for _, group in groupby(ordered, key=owner))


def _told(record: Any, t_ns: int) -> Told:
    own = (record.replica, record.migration, record.step, record.detail)
    return Told(t_ns, record.node, *own, record.source or "", record.target or "")


def _note(carried: Carried, record: Any, t_ns: int) -> None:
    if record.kind == RECEIVED:
        carried.arrived(record.sender, record.replica, t_ns)
    elif record.kind == EMITTED:
        carried.came_in(record.replica, t_ns)


def _lines(segments: Path, also: Sequence[bytes] = ()) -> Iterator[tuple[bytes, bool]]:
    """Yields decisions, lines that contain one of ``also``, and the first and last line of every segment;
    nothing else is needed.
    """
    for name in segment_names(segments):
        previous, was_told = b"", True
        try:
            file = open_regular(segments / str(name))
        except OSError:
            continue
        with file:
            for raw in lines_in(file):
                if raw is None:
                    continue
                is_decision = _KIND in raw
                if is_decision or not previous or any(part in raw for part in also):
                    yield raw, is_decision
                    was_told = True
                else:
                    was_told = False
                if raw.endswith(b"\n"):
                    previous = raw
        if not was_told:
            yield previous, False
