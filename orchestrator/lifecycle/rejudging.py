"""Judges a run again when more of its data has arrived: by its events, its manifest and the files here.

A record that arrives late changes two phases only: collection, which lacked it, and stop, if the node wrote
down a stop that was not seen here.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from msgspec import Struct, ValidationError, convert, structs

from node_agent.model.refusals import Refusal
from orchestrator.clocks.correction import clocks_in
from orchestrator.host_load import files as host_load
from orchestrator.lifecycle.examination import agent_crashes, examine
from orchestrator.planning.planned import recorded_run
from orchestrator.runs import manifest
from orchestrator.runs.backend import NodeOutcome, Status
from orchestrator.runs.events import EventLog
from orchestrator.runs.files import read_lines, read_object, write_json
from orchestrator.runs.outages import interventions
from orchestrator.runs.phases import Ending, Phase, PhaseResult, judge
from orchestrator.runs.refused import by_orchestrator
from orchestrator.runs.run_directory import RunDirectory
from orchestrator.runs.verdict import ORCHESTRATOR_DIED, Verdict, judge_run
from orchestrator.runs.verdict import read_verdict as read_verdict
from orchestrator.spec.experiment import Experiment

ENDED = "ended.json"
NO_PLAN = "the manifest has no plan: records cannot be checked"

Event = dict[str, Any]
E = TypeVar("E")


def rejudge(
    directory: RunDirectory,
    experiment: Experiment,
    missing: Collection[str],
    refused: Iterable[Refusal] = (),
) -> Verdict:
    """Judges the run, writes manifest and verdict. ``missing``: nodes whose records are not here or are lost.

    ``refused``: what collection refused to take from nodes.
    """
    nodes = experiment.topology.node_names
    known = read_object(directory.manifest)
    apps = manifest.apps_in(known)
    examined = examine(directory, nodes, apps, str(known.get("run") or ""))
    before = read_verdict(directory)
    if before is not None and any(reason.startswith(ORCHESTRATOR_DIED) for reason in before.reasons):
        verdict = structs.replace(before, completeness=examined.completeness)
    else:
        events = read_lines(directory.events)
        in_order = [node for node in nodes if _ended_in_order(directory, node)]
        history = after_arrival(events, missing, in_order, experiment.quorum)
        run = recorded_run(experiment, apps)
        unplanned = [NO_PLAN] if run is None and _got_beyond_planning(events) else []
        loads = _load_doubts(directory, experiment, known, missing)
        doubts = list(dict.fromkeys([*_recorded(known, "doubts"), *unplanned, *loads, *examined.doubts]))
        verdict = judge_run(
            history,
            examined.completeness,
            doubts,
            agent_crashes(events),
            [*examined.refused, *by_orchestrator(refused)],
            examined.never_emitted,
            interventions(events),
            _recorded(known, "notes"),
        )
    if known:
        write_json(directory.manifest, {**known, "files": manifest.checksums(directory.path)})
    write_json(directory.verdict, verdict.document())
    EventLog(directory.events).add("verdict", verdict=verdict.verdict, reasons=verdict.reasons)
    return verdict


def _got_beyond_planning(events: Sequence[Event]) -> bool:
    beyond = (Phase.UP, Phase.CONVERGE, Phase.WARM_UP, Phase.MEASURE, Phase.STOP, Phase.COLLECT)
    return any(event.get("phase") in beyond for event in events)


def _recorded(known: Mapping[str, Any], what: str) -> list[str]:
    """Returns the doubts or notes that were recorded when the run ended."""
    recorded = known.get(what)
    return [str(each) for each in recorded] if isinstance(recorded, list) else []


def _load_doubts(
    directory: RunDirectory, experiment: Experiment, known: Mapping[str, Any], missing: Collection[str]
) -> list[str]:
    """Returns doubts about the load of nodes that are machines of their own, from their records."""
    begin, end = known.get("measure_from_ns"), known.get("measure_until_ns")
    if not experiment.traits.own_machines or not isinstance(begin, int) or not isinstance(end, int):
        return []
    nodes = [node for node in experiment.topology.node_names if node not in missing]
    window = host_load.after(None, begin, end)
    loads = host_load.of_nodes(
        directory.path, nodes, window, host_load.limits_of(experiment), clocks_in(known)
    )
    return [doubt for load in loads for doubt in load.doubts]


def after_arrival(
    events: Sequence[Event], missing: Collection[str], in_order: Collection[str], quorum: float
) -> list[PhaseResult]:
    """Returns the phases as they ended, with collection and stop as the arrived records show them."""
    ended = _converted(events, _Ended, kind="phase", state="finished")
    history = [PhaseResult(each.phase, each.outcome, each.seconds, each.reason) for each in ended]
    outcomes = {each.phase: _outcomes(each) for each in _converted(events, _Nodes, kind="nodes")}
    return [
        _after_arrival(result, outcomes.get(result.phase, []), missing, in_order, quorum)
        for result in history
    ]


def _after_arrival(
    result: PhaseResult,
    outcomes: Sequence[NodeOutcome],
    missing: Collection[str],
    in_order: Collection[str],
    quorum: float,
) -> PhaseResult:
    match result.phase:
        case Phase.COLLECT if not missing and result.ending is Ending.TIMED_OUT:
            return PhaseResult(result.phase, Ending.OK, result.seconds)
        case Phase.COLLECT:
            mends = [outcome.node for outcome in outcomes if outcome.node not in missing]
        case Phase.STOP:
            lost = [outcome.node for outcome in outcomes if outcome.status is Status.UNREACHABLE]
            mends = [node for node in lost if node in in_order and node not in missing]
        case _:
            return result
    if result.ending not in (Ending.DEGRADED, Ending.FAILED):
        return result
    now = [NodeOutcome(o.node, Status.OK) if o.node in mends else o for o in outcomes]
    ending, reason = judge(now, quorum)
    return PhaseResult(result.phase, ending, result.seconds, reason)


class _Ended(Struct, frozen=True):
    """The event that says how a phase ended."""

    phase: Phase
    outcome: Ending
    seconds: float
    reason: str


class _Nodes(Struct, frozen=True):
    """The event that lists the nodes' outcomes in a phase."""

    phase: Phase
    ok: tuple[str, ...]
    failed: dict[str, str]
    unreachable: dict[str, str]


def _converted(events: Sequence[Event], to: type[E], **facts: str) -> Iterator[E]:
    """Returns the events with these facts; skips events that Rove cannot have written."""
    for event in events:
        if all(event.get(key) == value for key, value in facts.items()):
            with suppress(ValidationError):
                yield convert(event, to)


def _outcomes(event: _Nodes) -> list[NodeOutcome]:
    def those(reasons: Mapping[str, str], status: Status) -> Iterable[NodeOutcome]:
        return (NodeOutcome(node, status, reason) for node, reason in reasons.items())

    fine = [NodeOutcome(node, Status.OK) for node in event.ok]
    return [*fine, *those(event.failed, Status.FAILED), *those(event.unreachable, Status.UNREACHABLE)]


def _ended_in_order(directory: RunDirectory, node: str) -> bool:
    return read_object(directory.nodes / node / ENDED).get("in_order") is True
