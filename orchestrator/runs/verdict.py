"""Judges whether a run's results can be trusted, from what happened in it; pure.

*failed*: it did not do what was asked. *invalid*: it ran, but its numbers must not be used. Otherwise
*valid*.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any

from msgspec import Struct, ValidationError, convert, to_builtins
from msgspec.structs import replace

from node_agent.apps.records import record_format
from node_agent.telemetry.segments import Completeness
from orchestrator.errors import EXIT_FAILED, EXIT_INVALID, EXIT_OK
from orchestrator.runs.files import read_json
from orchestrator.runs.phases import Ending, Phase, PhaseResult
from orchestrator.runs.refused import RefusedBy, most_frequent
from orchestrator.runs.run_directory import RunDirectory

INTERRUPTED = "interrupted by user"
ORCHESTRATOR_DIED = "orchestrator died"


class Judgement(StrEnum):
    VALID = "valid"
    INVALID = "invalid"
    FAILED = "failed"

    @property
    def exit_code(self) -> int:
        return {"valid": EXIT_OK, "invalid": EXIT_INVALID, "failed": EXIT_FAILED}[self.value]


class PhaseRecord(Struct, frozen=True):
    phase: str
    seconds: float
    outcome: str


class Verdict(Struct, frozen=True):
    """The content of verdict.json."""

    verdict: Judgement
    reasons: tuple[str, ...] = ()
    completeness: dict[str, Completeness] = {}
    phases: tuple[PhaseRecord, ...] = ()
    expectations: tuple[dict[str, Any], ...] = ()
    refused: tuple[RefusedBy, ...] = ()
    members: dict[str, Judgement] = {}
    interventions: tuple[str, ...] = ()
    """What was done to the network by hand while the run went on."""
    notes: tuple[str, ...] = ()
    """What a reader of the numbers must know; it does not make them worthless."""

    def document(self) -> dict[str, Any]:
        document: dict[str, Any] = to_builtins(self)
        for name in ("members", "interventions", "notes"):
            if not document[name]:
                del document[name]
        return document


def read_verdict(directory: RunDirectory) -> Verdict | None:
    """Returns None if there is none, or none that this version understands."""
    try:
        return convert(read_json(directory.verdict), Verdict)
    except ValidationError:
        return None


def worst(judgements: Sequence[Judgement]) -> Judgement:
    order = (Judgement.VALID, Judgement.INVALID, Judgement.FAILED)
    return max(judgements, key=order.index, default=Judgement.VALID)


def judge_run(
    history: Sequence[PhaseResult],
    completeness: Mapping[str, Completeness],
    doubts: Sequence[str] = (),
    crashes: Mapping[str, int] = {},
    refused: Iterable[RefusedBy] = (),
    never_emitted: Mapping[str, int] = {},
    interventions: Sequence[str] = (),
    notes: Sequence[str] = (),
) -> Verdict:
    """``doubts`` are the backend's own: it knows if it was too slow, or its clocks were off.

    ``crashes``: how often each node's agent was to be killed; the missing end of its log is then no flaw.
    ``refused``: by nodes, and by the orchestrator itself. Refused strangers are no flaw either; but records
    that cannot be their node's, and deliveries that nobody emitted (``never_emitted``), are.
    """
    findings = [finding for result in _distinct_failures(history) if (finding := _phase_finding(result))]
    if was_cut_short(history):
        findings.append((Judgement.INVALID, INTERRUPTED))
    if any(result.phase is Phase.UP and result.passed for result in history):
        forgiven = {
            node: _without_crashes(found, crashes.get(node, 0)) for node, found in completeness.items()
        }
        findings.extend((Judgement.INVALID, reason) for reason in _telemetry_flaws(forgiven))
    findings.extend((Judgement.INVALID, reason) for reason in _refusal_reasons(completeness, never_emitted))
    findings.extend((Judgement.INVALID, doubt) for doubt in doubts)
    return Verdict(
        verdict=worst([judgement for judgement, _ in findings]),
        reasons=tuple(reason for _, reason in findings),
        completeness=dict(completeness),
        phases=tuple(PhaseRecord(r.phase.value, round(r.seconds, 3), r.ending.value) for r in history),
        refused=most_frequent(refused),
        interventions=tuple(interventions),
        notes=tuple(notes),
    )


def was_cut_short(history: Sequence[PhaseResult]) -> bool:
    """Did the user leave before the measurement was complete and safe?
    Only that skips phases of a sound run."""
    if any(result.ending is Ending.INTERRUPTED for result in history):
        return True
    reached = {result.phase for result in history}
    return all(result.passed for result in history) and not reached >= {*Phase} - {Phase.VERDICT}


def judge_expectations(
    verdict: Verdict, expectations: Sequence[dict[str, Any]], unmet: Sequence[str]
) -> Verdict:
    """Fails a valid run if an expectation does not hold; numbers that must not be used are not checked."""
    judged = replace(verdict, expectations=tuple(expectations))
    if verdict.verdict is not Judgement.VALID or not unmet:
        return judged
    reasons = tuple(f"expectation does not hold: {text}" for text in unmet)
    return replace(judged, verdict=Judgement.FAILED, reasons=reasons)


def noted(verdict: Verdict, notes: Sequence[str]) -> Verdict:
    """Adds what the analysis found that a reader must know."""
    return replace(verdict, notes=tuple(dict.fromkeys((*verdict.notes, *notes))))


def judge_reading(verdict: Verdict, read: Mapping[str, Mapping[str, int]]) -> Verdict:
    """Makes the run invalid if the analysis read other records than
    were judged. ``read``: its counts, by node.

    Both apply the same rules to the same files: if they differ, a node wrote lines that can be read in two
    ways.
    """
    doubts = []
    for node, found in verdict.completeness.items():
        judged = {
            "records": found.records,
            "corrupt_lines": found.corrupt + found.torn,
            "refused": found.refused,
        }
        counted = {name: read.get(node, {}).get(name, 0) for name in judged}
        if counted != judged:
            differ = ", ".join(
                f"{counted[name]} instead of {judged[name]} {name.replace('_', ' ')}"
                for name in judged
                if counted[name] != judged[name]
            )
            doubts.append(f"the analysis reads the records of node {node} in another way: {differ}")
    if not doubts:
        return verdict
    return replace(
        verdict,
        verdict=worst([verdict.verdict, Judgement.INVALID]),
        reasons=tuple(dict.fromkeys((*verdict.reasons, *doubts))),
    )


def judge_sweep(members: Mapping[str, Verdict], planned: int) -> Verdict:
    """A sweep is as good as its worst member. It is interrupted only if
    the user leaves before all have started."""
    findings = [(v.verdict, f"{run}: {reason}") for run, v in members.items() for reason in v.reasons]
    if len(members) < planned:
        findings.append((Judgement.INVALID, INTERRUPTED))
        findings.append((Judgement.INVALID, f"{planned - len(members)} of {planned} runs were not started"))
    return Verdict(
        verdict=worst([judgement for judgement, _ in findings] + [v.verdict for v in members.values()]),
        reasons=tuple(reason for _, reason in findings),
        members={run: verdict.verdict for run, verdict in members.items()},
        notes=shared_notes({run: verdict.notes for run, verdict in members.items()}),
    )


def shared_notes(by_run: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Returns each note of a sweep's runs once, with the runs that it is about."""
    about: dict[str, list[str]] = {}
    for run, notes in by_run.items():
        for note in notes:
            about.setdefault(note, []).append(run)
    return tuple(
        f"{note} ({f'all {len(runs)} runs' if len(runs) == len(by_run) > 1 else _some(runs)})"
        for note, runs in about.items()
    )


def judge_dead(phase: str | None) -> Verdict:
    """The verdict of a run whose orchestrator was killed before it could judge."""
    during = f" during {phase}" if phase else ""
    return Verdict(Judgement.FAILED, (f"{ORCHESTRATOR_DIED}{during}",))


def _distinct_failures(history: Sequence[PhaseResult]) -> list[PhaseResult]:
    """Leaves out phases that save data and failed only because of an earlier failure."""
    known: set[str] = set()
    broke = any(result.phase is Phase.UP and result.ending is Ending.BROKE for result in history)
    news = []
    for result in history:
        saves = result.phase in (Phase.STOP, Phase.COLLECT)
        # no node was up
        silent = broke and result.ending in (Ending.DEGRADED, Ending.FAILED)
        if not saves or not (silent or result.reason in known):
            news.append(result)
        if result.reason and result.ending is not Ending.OK:
            known.add(result.reason)
    return news


def _phase_finding(result: PhaseResult) -> tuple[Judgement, str] | None:
    if result.ending in (Ending.OK, Ending.INTERRUPTED):
        return None  # the interruption is reported once for the whole run
    text = (
        f"{result.phase} {result.ending}: {result.reason}"
        if result.reason
        else f"{result.phase} {result.ending}"
    )
    if result.ending is Ending.DEGRADED:
        return Judgement.INVALID, text
    # Routing that never converges and missing telemetry spoil the numbers, not the run.
    never_converged = result.phase is Phase.CONVERGE and result.ending is not Ending.BROKE
    if never_converged or result.phase in (Phase.STOP, Phase.COLLECT):
        return Judgement.INVALID, text
    return Judgement.FAILED, text


def _without_crashes(found: Completeness, crashes: int) -> Completeness:
    """Tolerates what a killed agent leaves: a boot without an end, and perhaps half a line."""
    cut_off = found.unclosed_boots - found.vanished_boots
    return replace(
        found,
        torn=max(0, found.torn - crashes),
        unclosed_boots=found.vanished_boots + max(0, cut_off - crashes),
    )


def _refusal_reasons(completeness: Mapping[str, Completeness], never_emitted: Mapping[str, int]) -> list[str]:
    reasons = []
    words = record_format().words
    for node, found in completeness.items():
        if found.refused:
            why = ", ".join(f"{n} {words[reason]}" for reason, n in found.reasons.items() if reason in words)
            reasons.append(f"records refused: {found.refused} of node {node} ({why})")
    reasons += [
        f"records refused: node {node} delivered {count} tuples that nobody emitted"
        for node, count in never_emitted.items()
    ]
    return reasons


def _telemetry_flaws(completeness: Mapping[str, Completeness]) -> list[str]:
    """One line for each way in which telemetry can be incomplete, with the count and the nodes."""
    flaws: dict[str, Callable[[Completeness], int]] = {
        "no telemetry at all": lambda found: int(found.boots == 0),
        "records missing": lambda found: found.missing,
        "records twice": lambda found: found.duplicates,
        "lines torn": lambda found: found.torn,
        "lines corrupt": lambda found: found.corrupt,
        "agents not stopped in order": lambda found: found.unclosed_boots - found.vanished_boots,
        "agents of whose records nothing is left": lambda found: found.vanished_boots,
        "agents that nobody started": lambda found: found.surplus_boots,
    }
    counts = {
        what: {node: number for node, found in completeness.items() if (number := count(found))}
        for what, count in flaws.items()
    }
    return [
        f"telemetry incomplete: {sum(by_node.values())} × {what} ({_some(list(by_node))})"
        for what, by_node in counts.items()
        if by_node
    ]


def _some(names: list[str], limit: int = 5) -> str:
    return ", ".join(names[:limit]) + (f" and {len(names) - limit} more" if len(names) > limit else "")
