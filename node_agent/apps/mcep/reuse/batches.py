"""Selections that are decided together: each alone, so many of one operator, or those of a span of time.

One decision for a batch needs fewer estimates than one for each selection (thesis, section 5.3.3).
"""

import math
from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import NamedTuple

from node_agent.apps.mcep.model import McepError
from node_agent.apps.mcep.reuse.similarity import Candidate


@dataclass(frozen=True, slots=True)
class Counted:
    """So many consecutive selections; ``math.inf``: all that an operator has."""

    selections: float = 1

    def __post_init__(self) -> None:
        if not self.selections >= 1:
            raise McepError(f"a batch has at least one selection, not {self.selections!r}")


@dataclass(frozen=True, slots=True)
class Timed:
    """Selections that end in the same span. Spans are the same for all operators, so batches of different
    operators can stand for each other."""

    seconds: float

    def __post_init__(self) -> None:
        if not 0 < self.seconds < math.inf:
            raise McepError(f"a batch takes a time above 0 s, not {self.seconds!r}")

    def span_of(self, t: float) -> int:
        return math.floor(t / self.seconds)


Batching = Counted | Timed
ALONE = Counted(1)


class Batch(NamedTuple):
    """Selections of one operator, in order."""

    operator: str
    selections: tuple[Candidate, ...]
    start: float
    end: float


def batch(selections: Iterable[Candidate]) -> Batch:
    every = tuple(selections)
    start, end = min(each.start for each in every), max(each.end for each in every)
    return Batch(every[0].operator, every, start, end)


def split(selections: Sequence[Candidate], batching: Batching) -> list[Batch]:
    """The batches of one operator's selections, which are in order."""
    if isinstance(batching, Timed):
        spans: dict[int, list[Candidate]] = {}
        for each in selections:
            spans.setdefault(batching.span_of(each.end), []).append(each)
        return [batch(each) for each in spans.values()]
    size = len(selections) if math.isinf(batching.selections) else int(batching.selections)
    return [batch(selections[first : first + size]) for first in range(0, len(selections), max(1, size))]


def counterparts(used: Batch, wanted: Batch) -> list[tuple[Candidate, Candidate]]:
    """For each wanted selection the one of the other batch that ends nearest; the earlier of two."""
    if len(used.selections) == 1:
        return [(used.selections[0], each) for each in wanted.selections]
    ends = [each.end for each in used.selections]
    found = []
    for each in wanted.selections:
        right = min(bisect_left(ends, each.end), len(ends) - 1)
        left = max(0, right - 1)
        nearest = left if abs(ends[left] - each.end) <= abs(ends[right] - each.end) else right
        found.append((used.selections[nearest], each))
    return found


class Timeline:
    """Batches of one operator by their ends."""

    def __init__(self, batches: Iterable[Batch] = ()) -> None:
        self._batches = sorted(batches, key=_end)

    def add(self, given: Batch) -> None:
        insort(self._batches, given, key=_end)

    def near(self, given: Batch) -> Iterator[Batch]:
        """Those that overlap a batch in time, the one with the nearest end first.

        Later batches of an operator must not start earlier; if they do, some may be left out.
        """
        right = bisect_left(self._batches, given.end, key=_end)
        left = right - 1
        while True:
            before = self._batches[left] if left >= 0 else None
            after = self._batches[right] if right < len(self._batches) else None
            if before is not None and before.end < given.start:
                before = None
            if after is not None and after.start > given.end:
                after = None
            if before is not None and (after is None or given.end - before.end <= after.end - given.end):
                left -= 1
                yield before
            elif after is not None:
                right += 1
                yield after
            else:
                return


_end = attrgetter("end")
