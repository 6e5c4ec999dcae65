"""Faults of a run: marks them in figures, describes them in words, and finds when they ended an agent."""

from collections.abc import Sequence
from math import inf
from typing import Any, NamedTuple

from orchestrator.results.colours import INK
from orchestrator.results.inputs import RunInput
from orchestrator.results.markup import NOTHING
from orchestrator.results.views import Cell, Result, most_telling
from orchestrator.runs.outages import CRASH, in_words

ALIKE_S = 0.5
"""Faults of two runs count as the same if their times differ by no more: in real time, starts vary."""
BESIDE = 0.025
"""Share of a figure's width: numbers closer together than that would cover each other."""
HINT = "; shaded: faults"


class Fault(NamedTuple):
    """Times are in seconds since the start of the run; ``until_s`` is None if it lasted to the end."""

    what: str
    node: str
    from_s: float
    until_s: float | None
    note: str = ""


def faults_of(result: Result) -> list[Fault]:
    return [Fault(*fault) for fault in result["series"]["faults"]]


def described(run: RunInput, found: Sequence[Fault]) -> list[str]:
    """Describes each fault in words, with what runs on the node."""
    return [in_words(each.what, each.node, run.places.get(each.node, []), each.note) for each in found]


def since(fault: Fault, zero_s: float | None) -> tuple[str, str]:
    """Returns when it began and ended, in seconds after ``zero_s``."""
    if zero_s is None:
        return NOTHING, NOTHING
    until = "the end" if fault.until_s is None else f"{fault.until_s - zero_s:.1f}"
    return f"{fault.from_s - zero_s:.1f}", until


def shared_by(shown: Sequence[Cell], results: Sequence[Result]) -> list[Fault]:
    """Returns the listed faults if all of ``results`` had them at the same times; otherwise none, as they
    cannot be marked.
    """
    _, (_, reference) = most_telling(shown)
    return faults_of(reference) if all(_alike(reference, result) for result in results) else []


def _alike(one: Result, other: Result) -> bool:
    ours, theirs = faults_of(one), faults_of(other)
    return len(ours) == len(theirs) and all(
        a.what == b.what and _close(a.from_s, b.from_s) and _close(a.until_s, b.until_s)
        for a, b in zip(ours, theirs, strict=True)
    )


def _close(a: float | None, b: float | None) -> bool:
    return a is b if a is None or b is None else abs(a - b) <= ALIKE_S


def mark(axis: Any, found: Sequence[Fault], end_s: float) -> None:
    """Shades each fault over the whole height, with its number in the list above its beginning."""
    labels: list[tuple[float, list[str]]] = []
    for number, fault in enumerate(found, start=1):
        until = end_s if fault.until_s is None else fault.until_s
        axis.axvspan(fault.from_s, until, color=INK, alpha=0.1, linewidth=0, zorder=0)
        for moment in (fault.from_s, fault.until_s):
            if moment is not None:
                axis.axvline(moment, color=INK, linewidth=0.8, linestyle=":", zorder=3)
        if labels and fault.from_s - labels[-1][0] < BESIDE * end_s:
            labels[-1][1].append(str(number))
        else:
            labels.append((fault.from_s, [str(number)]))
    for begin, numbers in labels:
        place = axis.get_xaxis_transform()
        axis.text(begin, 1.0, ", ".join(numbers), transform=place, va="bottom", ha="left", fontsize=8)


def spoken(run: RunInput, found: Sequence[Fault]) -> str:
    """Returns a sentence about the faults, for the text alternative of a figure."""
    texts = []
    for fault, text in zip(found, described(run, found), strict=True):
        begin, until = since(fault, 0.0)
        texts.append(f"{text} from {begin} s to {until if fault.until_s is None else f'{until} s'}")
    return f" Faults: {'; '.join(texts)}." if texts else ""


def died_s(result: Result, node: str, since_s: float) -> float:
    """Returns when the agent that ran on the node at ``since_s`` ended; infinite if nothing shows an end."""
    boots: Sequence[tuple[float, float]] = result["series"]["boots"].get(node, ())
    restart = min((first for first, _ in boots if first > since_s), default=inf)
    killed = [f.from_s for f in faults_of(result) if (f.what, f.node) == (CRASH, node)]
    # A killed agent loses records that it had not written yet, so its last record may be older than its end.
    ends = [t for t in killed if since_s <= t < restart] or [t for _, t in boots if since_s <= t < restart]
    return min(ends, default=restart)
