"""What a replica knows of one input stream: runs of positions without a gap, and the items that it holds."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable
from math import inf
from typing import NamedTuple

from msgspec import Struct

from node_agent.apps.dataflow.model.tuples import StreamTuple
from node_agent.model.intervals import Intervals

BEFORE_ALL = -1.0


class Run(Struct):
    """All that exists from position ``first`` to ``last`` is known.

    ``entry_ns``: when the position before ``first`` was captured. ``front_ns``: the latest capture that the
    run is known to have reached.
    """

    first: float
    last: float
    entry_ns: float
    front_ns: float


class Joined(NamedTuple):
    """A ``run`` that has grown, and which parts of it, at its beginning and its end, existed before."""

    run: Run
    before: Run | None
    after: Run | None


_NOTHING = Run(0, 0, BEFORE_ALL, BEFORE_ALL)


class InputStream:
    """One stream of the input ``upstream``; ``place`` numbers the streams of an operator."""

    def __init__(self, place: int, upstream: str) -> None:
        self.place = place
        self.upstream = upstream
        self.held: dict[int, StreamTuple] = {}
        self.seen = Intervals()
        self.used: set[int] = set()
        self.end: StreamTuple | None = None
        self.settled_until = 0
        self._order: list[int] = []
        self._runs: list[Run] = []

    def add(self, item: StreamTuple) -> Joined:
        self.held[item.tau] = item
        self.seen.add(item.tau)
        insort(self._order, item.tau)
        entry = item.prev_born_ns if item.prev else BEFORE_ALL
        if item.last:
            self.end = item
            return self._join(Run(item.prev + 1, inf, entry, inf))
        return self._join(Run(item.prev + 1, item.tau, entry, item.born_ns))

    def contradicts(self, item: StreamTuple) -> bool:
        """Whether ``item`` is beyond the end of the stream, a second end, or an end before an item that
        arrived. Then one of the two senders lies.
        """
        if self.end is not None:
            return item.tau > self.end.tau or (item.last and item.tau != self.end.tau)
        return item.last and self.seen.last() > item.tau

    def settle(self, until: int) -> Joined | None:
        """Notes that all positions up to ``until`` are done. Returns None if that was known."""
        if until <= self.settled_until:
            return None
        self.settled_until = until
        self.seen.add(1, until)
        return self._join(Run(1, until, BEFORE_ALL, BEFORE_ALL))

    @property
    def end_settled(self) -> bool:
        return self.end is not None and self.end.tau <= self.settled_until

    def settled_born_ns(self) -> int | None:
        """When the newest settled item was captured; None if that is not known."""
        index = bisect_right(self._order, self.settled_until)
        after = self.held[self._order[index]] if index < len(self._order) else None
        if after is None and self.end_settled:
            after = self.end
        if after is not None and 0 < after.prev <= self.settled_until:
            return after.prev_born_ns
        return self.held[self._order[index - 1]].born_ns if index else None

    def release(self, is_done: Callable[[StreamTuple], bool]) -> list[StreamTuple]:
        """Removes the items at the front that are done. Returns them."""
        count = 0
        while count < len(self._order) and is_done(self.held[self._order[count]]):
            count += 1
        gone = [self.held.pop(tau) for tau in self._order[:count]]
        del self._order[:count]
        return gone

    def forget(self, item: StreamTuple) -> None:
        """Forgets ``item``, which is held and no end, as if it had never arrived."""
        del self.held[item.tau]
        self._order.remove(item.tau)
        self.used.discard(item.tau)
        self.seen.discard(item.prev + 1, item.tau)
        index = bisect_right(self._runs, float(item.tau), key=lambda run: run.first) - 1
        if index < 0 or self._runs[index].last < item.tau:
            return  # its neighbours contradict each other about the positions between them
        run = self._runs[index]
        before = Run(run.first, item.prev, run.entry_ns, item.prev_born_ns)
        after = Run(item.tau + 1, run.last, item.born_ns, run.front_ns)
        self._runs[index : index + 1] = [part for part in (before, after) if part.first <= part.last]

    def oldest(self) -> StreamTuple | None:
        return self.held[self._order[0]] if self._order else None

    def at_or_after(self, tau: int) -> StreamTuple | None:
        index = bisect_left(self._order, tau)
        return self.held[self._order[index]] if index < len(self._order) else None

    def born_at_or_after(self, born_ns: int) -> StreamTuple | None:
        index = bisect_left(self._order, born_ns, key=lambda tau: self.held[tau].born_ns)
        return self.held[self._order[index]] if index < len(self._order) else self.end

    def knows(self, first: float, last: float) -> bool:
        """Whether all existing positions from ``first`` to ``last`` are known."""
        index = bisect_right(self._runs, first, key=lambda run: run.first) - 1
        return index >= 0 and last <= self._runs[index].last

    def knows_time(self, begin_ns: int, end_ns: int) -> bool:
        """Whether all that was captured from ``begin_ns`` until before ``end_ns`` is known.

        Capture times never fall along a stream; if a sender lies about them, less is known.
        """
        index = bisect_left(self._runs, float(begin_ns), key=lambda run: run.entry_ns) - 1
        return index >= 0 and self._runs[index].front_ns >= end_ns

    def reached(self, without_gap: bool) -> Run:
        """Returns the run up to which positions and times have arrived: with gaps, or all of them from the
        start.
        """
        if not without_gap:
            return self._runs[-1] if self._runs else _NOTHING
        return self._runs[0] if self._runs and self._runs[0].first <= 1 else _NOTHING

    def trim(self, most: int, most_used: int) -> None:
        """Forgets what was before the oldest gaps, if gaps are not filled any more, and used positions of
        items that never arrived.
        """
        del self._runs[: max(0, len(self._runs) - most)]
        if len(self.seen) > most:
            self.seen.fill()
        if len(self.used) > most_used:
            self.used.intersection_update(self.held)

    def _join(self, new: Run) -> Joined:
        """Inserts ``new`` and joins it with its neighbours."""
        begin = bisect_left(self._runs, new.first - 1, key=lambda run: run.last)
        end = bisect_right(self._runs, new.last + 1, key=lambda run: run.first)
        olds = self._runs[begin:end]
        before = olds[0] if olds and olds[0].first <= new.first else None
        after = olds[-1] if olds and olds[-1].last >= new.last else None
        for old in olds:
            if old.first < new.first:
                new.first, new.entry_ns = old.first, old.entry_ns
            new.last = max(new.last, old.last)
            new.front_ns = max(new.front_ns, old.front_ns)
        self._runs[begin:end] = [new]
        return Joined(new, before, after)
