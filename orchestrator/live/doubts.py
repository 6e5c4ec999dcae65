"""What speaks against the run by now, in the words and with the limits of its verdict.

The verdict itself comes after the end: it sees all records, and what nobody can know before, such as lost
records. Nothing is said here that it would not say of the same data.
"""

from collections.abc import Iterator
from typing import Any

from msgspec import ValidationError, convert

from node_agent.model.host_load import LoadSample
from node_agent.telemetry.segments import Completeness
from orchestrator.clocks.book import ClockBook, NodeClock, When
from orchestrator.clocks.offsets import Offset
from orchestrator.host_load import judgement
from orchestrator.live.facts import RunFacts
from orchestrator.live.sources import OUT_OF_TIME, TWICE
from orchestrator.runs.phases import Ending, Phase, PhaseResult
from orchestrator.runs.timeline import Change
from orchestrator.runs.verdict import INTERRUPTED, judge_run

LEAST_S = 10.0
"""Seconds of load before it is judged: one busy second proves nothing."""
MOST_SAMPLES = 400_000
"""Of all machines together; later ones are not judged."""
MOST_OFFSETS = 60
MOST_DOUBTS = 50


class Doubts:
    def __init__(self, facts: RunFacts) -> None:
        self._facts = facts
        self._history: list[PhaseResult] = []
        self._loads: dict[str, list[LoadSample]] = {}
        self._load_doubts: dict[str, list[str]] = {}
        self._samples = 0
        self._offsets: dict[str, list[Offset]] = {}
        self._clock_doubts: dict[str, tuple[str, ...]] = {}
        self._radio: list[str] = []
        self._refused: dict[str, dict[str, int]] = {}
        self._corrupt: dict[str, int] = {}
        self._twice: dict[str, int] = {}
        self._changed = True
        self._said: list[str] = []

    def phase_ended(self, event: dict[str, Any]) -> None:
        try:
            phase, ending = Phase(str(event.get("phase"))), Ending(str(event.get("outcome")))
        except ValueError:
            return
        self._history.append(PhaseResult(phase, ending, 0.0, str(event.get("reason") or "")))
        self._changed = True

    def load(self, machine: str, sample: LoadSample) -> None:
        """Takes a second of the measured time."""
        if self._samples >= MOST_SAMPLES:
            return
        self._samples += 1
        samples = self._loads.setdefault(machine, [])
        samples.append(sample)
        if len(samples) % max(1, len(samples) // 50):
            return  # judged again only when there is something like 2 % more
        load = judgement.summed_up(samples, self._facts.limits)
        who = machine or "this machine"
        enough = load is not None and load.seconds >= LEAST_S
        found = judgement.doubts(who, load, self._facts.limits) if enough else []
        found += judgement.step_doubts(who, judgement.steps(samples), self._facts.limits)
        if found != self._load_doubts.get(machine, []):
            self._load_doubts[machine] = found
            self._changed = True

    def clock(self, node: str, offset: Offset) -> None:
        known = [each for each in self._offsets.get(node, []) if each.at_ns < offset.at_ns]
        self._offsets[node] = [*known, offset][-MOST_OFFSETS:]
        clock = NodeClock(tuple(self._offsets[node]), frozenset({When.BEFORE, When.AFTER}))
        found = ClockBook({node: clock}).doubts(self._facts.limits.clock_ms / 1e3, [node])
        if found != self._clock_doubts.get(node, ()):
            self._clock_doubts[node] = found
            self._changed = True

    def radio(self, late_ratio: float) -> None:
        from orchestrator.backends.netns.radio.lateness import MOST_LATE

        late = late_ratio > MOST_LATE
        text = [f"the radio was late: {late_ratio:.1%} of deliveries by more than 1 ms"] if late else []
        self._changed |= text != self._radio
        self._radio = text

    def refuse(self, node: str, state: str, why: str, lines: int = 1) -> None:
        if state == "refused":
            reasons = self._refused.setdefault(node, {})
            reasons[why] = reasons.get(why, 0) + lines
        elif why == TWICE:
            self._twice[node] = self._twice.get(node, 0) + lines
        elif why != OUT_OF_TIME:
            self._corrupt[node] = self._corrupt.get(node, 0) + lines
        self._changed = True

    def tick(self, t: float) -> Iterator[Change]:
        if not self._changed:
            return
        self._changed = False
        found = self.so_far()
        if found != self._said:
            self._said = found
            yield Change(t, "", "verdict", "", {"so_far": found})

    def so_far(self) -> list[str]:
        own = [
            *self._radio,
            *(doubt for node in sorted(self._clock_doubts) for doubt in self._clock_doubts[node]),
            *(doubt for who in sorted(self._load_doubts) for doubt in self._load_doubts[who]),
        ]
        nodes = sorted({*self._refused, *self._corrupt, *self._twice})
        completeness = {node: self._completeness(node) for node in nodes}
        verdict = judge_run(self._history, completeness, own)
        ended = any(result.ending is Ending.INTERRUPTED for result in self._history)
        reasons = [reason for reason in verdict.reasons if ended or reason != INTERRUPTED]
        return reasons[:MOST_DOUBTS]

    def _completeness(self, node: str) -> Completeness:
        reasons = self._refused.get(node, {})
        return Completeness(
            records=0,
            boots=1,
            missing=0,
            duplicates=self._twice.get(node, 0),
            torn=0,
            corrupt=self._corrupt.get(node, 0),
            unclosed_boots=0,
            refused=sum(reasons.values()),
            reasons=dict(sorted(reasons.items())),
        )


def offset_of(event: dict[str, Any], at_ns: int) -> Offset | None:
    """Returns the measurement in an event about a node's clock."""
    try:
        offset, uncertainty = float(event["offset_ms"]), float(event["uncertainty_ms"])
        found = {"at_ns": at_ns, "offset_ns": round(offset * 1e6), "uncertainty_ns": round(uncertainty * 1e6)}
        return convert(found, Offset)
    except (KeyError, TypeError, ValueError, OverflowError, ValidationError):
        return None
