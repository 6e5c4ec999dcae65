"""The phases of a run and the decisions between them, without I/O.

A run goes through all phases in order. Once something is wrong (a phase failed, the user interrupts) nothing
new is started: running programs are stopped, records collected, and everything created is removed.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum, StrEnum

from orchestrator.runs.backend import NodeOutcome, Outcomes, Status


class Phase(StrEnum):
    PLAN = "plan"
    UP = "up"
    CONVERGE = "converge"
    WARM_UP = "warm-up"
    MEASURE = "measure"
    STOP = "stop"
    COLLECT = "collect"
    DOWN = "down"
    VERDICT = "verdict"


_BEGINS_SOMETHING = (Phase.PLAN, Phase.UP, Phase.CONVERGE, Phase.WARM_UP, Phase.MEASURE)
_MOST_NAMED = 10
_PARTICULAR = re.compile(r"\([^)]*\)|\S*\d\S*")
_SLOWEST = 20.0
"""So many seconds a simulator may take for a second of virtual time."""
_SAVES_DATA = (Phase.STOP, Phase.COLLECT)


class Urgency(IntEnum):
    """How the user wants to leave: not yet, in order (first Ctrl-C), at once (second)."""

    NONE = 0
    IN_ORDER = 1
    AT_ONCE = 2


class Ending(StrEnum):
    OK = "ok"
    DEGRADED = "degraded"  # enough nodes succeeded, but not all
    FAILED = "failed"  # too few nodes succeeded
    TIMED_OUT = "timed out"
    BROKE = "broke"  # an error of the backend or of ours
    INTERRUPTED = "interrupted"


@dataclass(frozen=True)
class PhaseResult:
    phase: Phase
    ending: Ending
    seconds: float = 0.0
    reason: str = ""

    @property
    def passed(self) -> bool:
        return self.ending in (Ending.OK, Ending.DEGRADED)


def is_wanted(phase: Phase, history: Sequence[PhaseResult], urgency: Urgency) -> bool:
    """Should ``phase`` be entered, given how the earlier ones ended?"""
    if phase in _BEGINS_SOMETHING:
        return urgency is Urgency.NONE and all(result.passed for result in history)
    if phase in _SAVES_DATA:
        # If the user left while nodes were coming up, there is nothing to stop and nothing was recorded.
        was_up = any(r.phase is Phase.UP and r.ending is not Ending.INTERRUPTED for r in history)
        return was_up and urgency < Urgency.AT_ONCE
    return True


def interrupted_by(phase: Phase) -> Urgency | None:
    """Returns the least urgency that interrupts ``phase``; None: it always runs to its end or its timeout."""
    if phase in _BEGINS_SOMETHING:
        return Urgency.IN_ORDER
    return Urgency.AT_ONCE if phase in _SAVES_DATA else None


def complete(outcomes: Outcomes, nodes: Iterable[str]) -> list[NodeOutcome]:
    """Returns an outcome for every node of the run; a node without one was not reached."""
    reported = {outcome.node: outcome for outcome in outcomes}
    silent = Status.UNREACHABLE
    return [reported.get(node, NodeOutcome(node, silent, "it reported nothing")) for node in nodes]


def judge(outcomes: Outcomes, quorum: float) -> tuple[Ending, str]:
    """Returns how a phase ended, by the share of nodes that succeeded."""
    troubled = [outcome for outcome in outcomes if outcome.status is not Status.OK]
    if not troubled:
        return Ending.OK, ""
    came_through = len(outcomes) - len(troubled)
    said = "; ".join(_described(alike) for alike in _by_kind(troubled))
    reason = f"{len(troubled)} of {len(outcomes)} nodes did not come through ({said})"
    return (Ending.DEGRADED if came_through >= quorum * len(outcomes) else Ending.FAILED), reason


def _by_kind(troubled: Outcomes) -> list[list[NodeOutcome]]:
    """Groups nodes with the same problem, ignoring addresses, numbers and lists in its text."""
    kinds: dict[str, list[NodeOutcome]] = {}
    for outcome in troubled:
        kinds.setdefault(_PARTICULAR.sub("", outcome.reason), []).append(outcome)
    return list(kinds.values())


def _described(alike: Sequence[NodeOutcome]) -> str:
    first, *others = alike
    also = f"; also {_named(others)}" if others else ""
    return f"{first.node}: {first.reason}{also}"


def _named(outcomes: Outcomes) -> str:
    more = len(outcomes) - _MOST_NAMED
    names = ", ".join(outcome.node for outcome in outcomes[:_MOST_NAMED])
    return f"{names} and {more} more" if more > 0 else names


def advance_timeout(seconds: float) -> float:
    """Returns a wall-clock limit for ``seconds`` of the run: a simulator may be slower than real time."""
    return 60.0 + virtual_timeout(seconds)


def virtual_timeout(seconds: float) -> float:
    """Returns a wall-clock limit for what is bounded by ``seconds`` of virtual time itself."""
    return _SLOWEST * seconds
