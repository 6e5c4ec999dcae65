"""Stores the measurements of each node's clock, and judges whether the nodes' times can be compared."""

from bisect import bisect
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from itertools import pairwise
from typing import Any

from msgspec import Struct, ValidationError, convert, to_builtins

from orchestrator.clocks.offsets import Offset, between, stepped


class When(StrEnum):
    """When a measurement was made: before the query flows, while it does, or after it has ended."""

    BEFORE = "before"
    DURING = "during"
    AFTER = "after"


class Step(Struct, frozen=True):
    """Somebody set the clock by ``size_ns`` between two moments of ours."""

    size_ns: int
    from_ns: int
    until_ns: int


class NodeClock(Struct, frozen=True):
    """The measurements of one clock: ``samples`` in order of time, and why some are ``missed``."""

    samples: tuple[Offset, ...] = ()
    measured: frozenset[When] = frozenset()
    missed: dict[When, str] = {}

    def used(self) -> tuple[Offset, ...]:
        """Returns the first and the last sample, and those between that
        are more precise than their neighbours.

        A slow answer must not spoil quicker ones; but if they contradict each other, it counts.
        """
        kept = sorted({*self.samples[:1], *self.samples[-1:]}, key=_at)
        for sample in sorted(self.samples[1:-1], key=lambda each: (each.uncertainty_ns, each.at_ns)):
            place = bisect(kept, sample.at_ns, key=_at)
            interpolated = between(kept[place - 1], kept[place], sample.at_ns)
            apart_ns = abs(sample.offset_ns - interpolated.offset_ns)
            is_better = sample.uncertainty_ns < interpolated.uncertainty_ns
            if is_better or apart_ns > sample.uncertainty_ns + interpolated.uncertainty_ns:
                kept.insert(place, sample)
        return tuple(kept)

    def worst_ns(self) -> int | None:
        """Returns the largest uncertainty: at a measurement, or halfway between two."""
        used = self.used()
        halfway = (between(a, b, (a.at_ns + b.at_ns) // 2) for a, b in pairwise(used))
        return max((offset.uncertainty_ns for offset in (*used, *halfway)), default=None)

    def drift_ppm(self) -> float | None:
        """Returns the drift over the whole run; None without two measurements."""
        if len(self.samples) < 2:
            return None
        first, last = self.samples[0], self.samples[-1]
        return (last.offset_ns - first.offset_ns) / (last.at_ns - first.at_ns) * 1e6

    def steps(self) -> tuple[Step, ...]:
        return tuple(
            Step(after.offset_ns - before.offset_ns, before.at_ns, after.at_ns)
            for before, after in pairwise(self.used())
            if stepped(before, after)
        )


def _at(sample: Offset) -> int:
    return sample.at_ns


class ClockBook:
    def __init__(self, clocks: Mapping[str, NodeClock] = {}) -> None:
        self._clocks = dict(clocks)

    @property
    def nodes(self) -> tuple[str, ...]:
        return tuple(sorted(self._clocks))

    def of(self, node: str) -> NodeClock:
        return self._clocks.get(node, NodeClock())

    def add(self, node: str, offset: Offset, when: When) -> None:
        known = self.of(node)
        # One offset for each moment; our own clock may have been set back since the last one.
        others = (sample for sample in known.samples if sample.at_ns != offset.at_ns)
        samples = tuple(sorted((*others, offset), key=_at))
        missed = {time: why for time, why in known.missed.items() if time is not when}
        self._clocks[node] = NodeClock(samples, known.measured | {when}, missed)

    def miss(self, node: str, when: When, reason: str) -> None:
        """Notes that the node did not answer; irrelevant if it answers
        at another moment of the same phase."""
        known = self.of(node)
        if when not in known.measured:
            self._clocks[node] = NodeClock(known.samples, known.measured, {**known.missed, when: reason})

    def doubts(self, bound_s: float, nodes: Iterable[str]) -> tuple[str, ...]:
        """Returns why times of ``nodes``, those that took part, cannot be compared to within ``bound_s``."""
        return tuple(doubt for node in sorted(nodes) for doubt in _doubts(node, self.of(node), bound_s))

    def document(self) -> dict[str, Any]:
        """Returns the manifest's content."""
        return {
            node: {
                **to_builtins(clock, order="deterministic"),
                "uncertainty_ns": clock.worst_ns(),
                "drift_ppm": clock.drift_ppm(),
                "steps": to_builtins(clock.steps()),
            }
            for node, clock in sorted(self._clocks.items())
        }


def read_book(document: Any) -> ClockBook:
    """Reads what ``ClockBook.document`` wrote; raises msgspec.ValidationError for anything else."""
    clocks = convert(document or {}, dict[str, NodeClock])
    for node, clock in clocks.items():
        if any(after.at_ns <= before.at_ns for before, after in pairwise(clock.samples)):
            raise ValidationError(f"the samples of {node} are not in the order of time")
    return ClockBook(clocks)


def _doubts(node: str, clock: NodeClock, bound_s: float) -> Sequence[str]:
    found = []
    for when in (When.BEFORE, When.AFTER):
        if when not in clock.measured:
            reason = f": {clock.missed[when]}" if when in clock.missed else ""
            found.append(f"clock of {node} was not measured {when} the run{reason}")
    worst_ns = clock.worst_ns() or 0
    # It is not known when between two measurements the clock was set.
    too_large = [step for step in clock.steps() if abs(step.size_ns) + worst_ns > bound_s * 1e9]
    for step in too_large:
        way = "forward" if step.size_ns > 0 else "back"
        found.append(
            f"clock of {node} was set {way} by {abs(step.size_ns) / 1e9:.3f} s between "
            f"{_time_of_day(step.from_ns)} and {_time_of_day(step.until_ns)} UTC"
        )
    # Across such a step nothing is known, and the step was reported.
    if worst_ns > bound_s * 1e9 and not too_large:
        found.append(
            f"clock of {node} is known to within {worst_ns / 1e6:.1f} ms only: more than clocks.uncertainty, "
            f"{bound_s * 1e3:g} ms"
        )
    return found


def _time_of_day(t_ns: int) -> str:
    moment = datetime.fromtimestamp(t_ns // 10**9, UTC)
    return f"{moment:%H:%M:%S}.{t_ns % 10**9 // 10**8}"
