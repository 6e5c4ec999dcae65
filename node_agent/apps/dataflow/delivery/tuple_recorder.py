"""Records what a replica does with tuples. Neighbours that are handled together share one record.

All that one record says happened within a moment.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from node_agent.apps.dataflow.events import (
    MOST_TUPLES,
    TupleDelivered,
    TupleDropped,
    TupleEmitted,
    TupleProcessed,
    TupleReceived,
    TupleSent,
)
from node_agent.apps.dataflow.model.tuples import StreamTuple, sizes_of
from node_agent.apps.dataflow.windows.units import Unit
from node_agent.model.telemetry import Event

LONGEST_REASON = 1000
"""In letters: a user's function may fail with any text."""


class TupleRecorder:
    def __init__(self, replica: str, record: Callable[[Event], None]) -> None:
        self._replica = replica
        self._record = record

    def emitted(self, items: Sequence[StreamTuple]) -> None:
        for run in neighbours(items):
            self._record(TupleEmitted(self._replica, run[0].origin, run[0].tau, *_extent(sizes_of(run))))

    def captured(self, tau: int, sizes: Sequence[int]) -> None:
        """Records that a source emitted its next tuples, of which ``tau`` is the first."""
        for begin in range(0, len(sizes), MOST_TUPLES):
            part = sizes[begin : begin + MOST_TUPLES]
            self._record(TupleEmitted(self._replica, self._replica, tau + begin, *_extent(part)))

    def sent(self, to: str, items: Sequence[StreamTuple]) -> None:
        for run in neighbours(items):
            self._record(TupleSent(self._replica, to, run[0].origin, run[0].tau, *_extent(sizes_of(run))))

    def received(self, sender: str, items: Sequence[StreamTuple]) -> None:
        for run in neighbours(items):
            self._record(
                TupleReceived(self._replica, sender, run[0].origin, run[0].tau, *_extent(sizes_of(run)))
            )

    def processed(self, items: Sequence[StreamTuple], took_ns: int) -> None:
        """``took_ns``: for all of them together."""
        for run in neighbours(items):
            size, many, sizes = _extent(sizes_of(run))
            part = took_ns * many // len(items)
            self._record(TupleProcessed(self._replica, run[0].origin, run[0].tau, size, part, many, sizes))

    def processed_unit(self, unit: Unit, took_ns: int) -> None:
        self._record(TupleProcessed(self._replica, unit.origin, unit.tau, unit.size, took_ns))

    def delivered(self, items: Sequence[StreamTuple]) -> None:
        for run in neighbours(items):
            first = run[0]
            size, many, sizes = _extent(sizes_of(run))
            births = tuple([item.born_ns - first.born_ns for item in run]) if many > 1 else ()
            self._record(
                TupleDelivered(
                    self._replica, first.origin, first.tau, size, first.born_ns, many, sizes, births
                )
            )

    def reached(self, items: Sequence[StreamTuple]) -> None:
        """Records what a sink got: payloads are delivered, holes were filtered out."""
        holes = [item for item in items if not item.payloads]
        self.delivered([item for item in items if item.payloads] if holes else items)
        for hole in holes:
            if not hole.last:
                self.dropped(hole, "filtered")

    def delivered_unit(self, unit: Unit) -> None:
        self._record(TupleDelivered(self._replica, unit.origin, unit.tau, unit.size, unit.born_ns))

    def dropped(self, what: StreamTuple | Unit, reason: str, downstream: str | None = None) -> None:
        """``downstream``: the operator that will not get it; None: no operator will."""
        reason = reason[:LONGEST_REASON]
        self._record(TupleDropped(self._replica, what.origin, what.tau, what.size, reason, downstream))

    def absorbed(self, origin: str, tau: int) -> None:
        """Records that the tuple became part of a new one."""
        self._record(TupleDropped(self._replica, origin, tau, 0, "absorbed"))


def neighbours(items: Sequence[StreamTuple]) -> Iterator[Sequence[StreamTuple]]:
    """Cuts ``items`` wherever an item does not follow on the one before, and leaves out the ends of streams.

    No run is longer than one record allows.
    """
    if _is_one_run(items):
        yield items
        return
    items = [item for item in items if not item.last]
    if not items:
        return
    if len(items) > MOST_TUPLES:
        for begin in range(0, len(items), MOST_TUPLES):
            yield from neighbours(items[begin : begin + MOST_TUPLES])
        return
    begin = 0
    for end, (one, other) in enumerate(pairwise(items), start=1):
        if other.tau != one.tau + 1 or other.origin != one.origin:
            yield items[begin:end]
            begin = end
    yield items[begin:]


def _is_one_run(items: Sequence[StreamTuple]) -> bool:
    """Whether there is nothing to cut. Usually so; it is checked several times for every tuple."""
    if not 0 < len(items) <= MOST_TUPLES:
        return False
    origin, tau = items[0].origin, items[0].tau
    for item in items:
        if item.tau != tau or item.last or item.origin != origin:
            return False
        tau += 1
    return True


def _extent(sizes: Sequence[int]) -> tuple[int, int, tuple[int, ...]]:
    """Returns the bytes of all together, their number, and the bytes of each if they differ."""
    alike = sizes.count(sizes[0]) == len(sizes)
    return sum(sizes), len(sizes), () if alike else tuple(sizes)
