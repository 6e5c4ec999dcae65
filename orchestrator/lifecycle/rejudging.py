"""Judging a run anew when more of its data has arrived: by its events, its manifest and what is here now.

Only what an arrived record can mend is mended: a collection that lacked it, and a stop that nobody here could
see but that the node wrote down.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from msgspec import structs

from node_agent.model.refusals import Refusal
from orchestrator.backends.base import NodeOutcome, Status
from orchestrator.clocks.correction import clocks_in
from orchestrator.host_load import files as host_load
from orchestrator.lifecycle import manifest
from orchestrator.lifecycle.events import EventLog
from orchestrator.lifecycle.examination import examine
from orchestrator.lifecycle.files import read_lines, read_object, write_json
from orchestrator.lifecycle.phases import Ending, Phase, PhaseResult, judge
from orchestrator.lifecycle.refused import by_orchestrator
from orchestrator.lifecycle.run_directory import RunDirectory
from orchestrator.lifecycle.verdict import ORCHESTRATOR_DIED, Verdict, judge_run
from orchestrator.lifecycle.verdict import read_verdict as read_verdict
from orchestrator.planning import faults as fault_plan
from orchestrator.spec.experiment import Experiment

ENDED = "ended.json"

Event = dict[str, Any]


def judge_anew(
    directory: RunDirectory,
    experiment: Experiment,
    missing: Collection[str],
    refused: Iterable[Refusal] = (),
) -> Verdict:
    """Writes manifest and verdict; ``missing``: nodes whose records are still not here, or lost.

    ``refused``: what collection did not take from nodes.
    """
    nodes = experiment.topology.node_names
    known = read_object(directory.manifest)
    examined = examine(directory, nodes, manifest.plan_in(known))
    before = read_verdict(directory)
    if before is not None and any(reason.startswith(ORCHESTRATOR_DIED) for reason in before.reasons):
        verdict = structs.replace(before, completeness=examined.completeness)
    else:
        events = read_lines(directory.events)
        in_order = [node for node in nodes if _ended_in_order(directory, node)]
        history = mended(events, missing, in_order, experiment.quorum)
        doubts = list(
            dict.fromkeys([*known.get("doubts", ()), *_load_doubts(directory, experiment, known, missing)])
        )
        verdict = judge_run(
            history,
            examined.completeness,
            doubts,
            fault_plan.crashes(experiment),
            [*examined.refused, *by_orchestrator(refused)],
            examined.never_emitted,
        )
    if known:
        write_json(directory.manifest, {**known, "files": manifest.checksums(directory.path)})
    write_json(directory.verdict, verdict.document())
    EventLog(directory.events).add("verdict", verdict=verdict.verdict, reasons=verdict.reasons)
    return verdict


def _load_doubts(
    directory: RunDirectory, experiment: Experiment, known: Mapping[str, Any], missing: Collection[str]
) -> list[str]:
    """Of nodes that are machines of their own: how busy they were is in their records."""
    begin, end = known.get("measure_from_ns"), known.get("measure_until_ns")
    if experiment.backend != "ssh" or not isinstance(begin, int) or not isinstance(end, int):
        return []
    nodes = [node for node in experiment.topology.node_names if node not in missing]
    window = host_load.after(None, begin, end)
    loads = host_load.of_nodes(
        directory.path, nodes, window, host_load.limits_of(experiment), clocks_in(known)
    )
    return [doubt for load in loads for doubt in load.doubts]


def mended(
    events: Sequence[Event], missing: Collection[str], in_order: Collection[str], quorum: float
) -> list[PhaseResult]:
    """The phases as they ended, but collection and stop as they look now."""
    history = [
        PhaseResult(Phase(event["phase"]), Ending(event["outcome"]), event["seconds"], event["reason"])
        for event in events
        if event.get("kind") == "phase" and event.get("state") == "finished"
    ]
    outcomes = {event["phase"]: _outcomes(event) for event in events if event.get("kind") == "nodes"}
    return [_mended(result, outcomes.get(result.phase, []), missing, in_order, quorum) for result in history]


def _mended(
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


def _outcomes(event: Event) -> list[NodeOutcome]:
    def those(key: str, status: Status) -> Iterable[NodeOutcome]:
        return (NodeOutcome(node, status, reason) for node, reason in event[key].items())

    fine = [NodeOutcome(node, Status.OK) for node in event["ok"]]
    return [*fine, *those("failed", Status.FAILED), *those("unreachable", Status.UNREACHABLE)]


def _ended_in_order(directory: RunDirectory, node: str) -> bool:
    return read_object(directory.nodes / node / ENDED).get("in_order") is True
