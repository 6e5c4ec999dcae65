"""Which items make up which unit: count windows, time windows, and joins on equal positions.

A window that slides further than its size also needs the items that it skips, though it does not process
them. So every item belongs to some unit, and a unit's items alone tell which unit came before it.
"""

from math import inf

from node_agent.apps.dataflow.model.tuples import StreamTuple
from node_agent.apps.dataflow.model.units import CountWindow, TimeWindow
from node_agent.apps.dataflow.windows.runs import InputStream, Run
from node_agent.apps.dataflow.windows.units import Gaps, Unit
from node_agent.apps.dataflow.windows.windows import WindowAssembler, by_input

Items = list[tuple[InputStream, StreamTuple]]


class CountAssembler(WindowAssembler):
    """Unit n has the positions (n-1)·slide+1 … (n-1)·slide+size of one dense stream.

    If the stream ends within a window, there is no such unit.
    """

    def __init__(
        self, name: str, streams: tuple[tuple[str, str], ...], window: CountWindow, gaps: Gaps | None = None
    ) -> None:
        super().__init__(name, streams, gaps)
        (self._stream,) = self._streams.values()
        self._size, self._slide = window.size, window.slide
        self._reach = max(window.size, window.slide)

    def _end(self, number: int) -> int:
        return (number - 1) * self._slide + self._size if number > 0 else 0

    def _begin(self, number: int) -> int:
        return max(1, self._end(number) - self._reach + 1)

    def _needed_by(self, item: StreamTuple) -> tuple[int, int]:
        first = -((self._size - item.tau) // self._slide) + 1
        return max(1, first), (item.tau - 1 + self._reach - self._size) // self._slide + 1

    def _ended_by(self, run: Run) -> float:
        return inf if run.last == inf else (run.last - self._size) // self._slide + 1

    def _begun_before(self, run: Run) -> float:
        return self._last_with(run.first - 1) if run.first > 1 else 0

    def _last_with(self, tau: float) -> float:
        return (tau - 1 + self._reach - self._size) // self._slide + 1

    def _is_complete(self, number: int) -> bool:
        if number == self._limit:
            return self._stream.knows(self._end(number - 1) + 1, inf)
        return self._stream.knows(self._begin(number), self._end(number))

    def _unit(self, number: int, items: Items) -> Unit:
        before = self._end(number - 1)
        held = self._stream.held
        if number == self._limit:
            return self._last_unit(number)
        prev_born_ns = held[before].born_ns if before in held else held[before + 1].prev_born_ns
        begin = self._end(number) - self._size + 1
        inside = [(stream, item) for stream, item in items if item.tau >= begin]
        born_ns = items[-1][1].born_ns
        return Unit(
            self._name, number, number - 1, born_ns, prev_born_ns if number > 1 else 0, by_input(inside)
        )

    def _last_unit(self, number: int) -> Unit:
        assert self._stream.end is not None
        after = self._stream.at_or_after(self._end(number - 1) + 1) if number > 1 else None
        prev_born_ns = after.prev_born_ns if after is not None else 0
        born_ns = self._stream.end.born_ns
        return Unit(self._name, number, number - 1, born_ns, prev_born_ns, {}, last=True)

    def _limit_of_ended(self) -> int | None:
        if self._stream.end is None:
            return None
        count = self._stream.end.prev
        return 1 if count < self._size else (count - self._size) // self._slide + 2

    def _done_when_settled(self, stream: InputStream) -> int:
        if not stream.settled_until:
            return 0
        return (stream.settled_until - 1 + self._reach - self._size) // self._slide + 1


class TimeAssembler(WindowAssembler):
    """Unit n has what was captured from (n-1)·slide until before (n-1)·slide+size, if anything was.

    It is complete when every stream has passed its end. A stream that has ended has passed every time.
    """

    def __init__(
        self, name: str, streams: tuple[tuple[str, str], ...], window: TimeWindow, gaps: Gaps | None = None
    ) -> None:
        super().__init__(name, streams, gaps)
        self._size, self._slide = window.size_ns, window.slide_ns
        self._reach = max(window.size_ns, window.slide_ns)

    def _end(self, number: int) -> int:
        return (number - 1) * self._slide + self._size

    def _needed_by(self, item: StreamTuple) -> tuple[int, int]:
        return max(1, (item.born_ns - self._size) // self._slide + 2), self._last_with(item.born_ns)

    def _last_with(self, born_ns: int) -> int:
        return (born_ns - self._size + self._reach) // self._slide + 1

    def _ended_by(self, run: Run) -> float:
        return inf if run.front_ns == inf else (run.front_ns - self._size) // self._slide + 1

    def _begun_before(self, run: Run) -> float:
        return self._last_with(int(run.entry_ns)) if run.entry_ns >= 0 else 0

    def _is_complete(self, number: int) -> bool:
        if number == self._limit:
            return True
        end = self._end(number)
        return all(stream.knows_time(max(0, end - self._reach), end) for stream in self._streams.values())

    def _unit(self, number: int, items: Items) -> Unit:
        if number == self._limit:
            before = self._latest_before_end()
            born_ns = max(stream.end.born_ns for stream in self._streams.values() if stream.end)
            return Unit(self._name, number, number - 1, born_ns, max(before, 0), {}, last=True)
        before = self._latest_before(number, items) if number > 1 else -1
        prev = 0 if before < 0 else min(number - 1, self._last_with(before))
        begin = self._end(number) - self._size
        inside = [(stream, item) for stream, item in items if item.born_ns >= begin]
        born_ns = max(item.born_ns for _, item in items)
        return Unit(self._name, number, prev, born_ns, max(before, 0), by_input(inside))

    def _latest_before(self, number: int, items: Items) -> int:
        """Returns when the latest item of the previous unit was captured; -1 if there is none."""
        latest = max((i.born_ns for _, i in items if i.born_ns < self._end(number - 1)), default=-1)
        for stream in self._streams.values():
            first = next((item for of, item in items if of is stream), None)
            if first is None:
                first = stream.born_at_or_after(self._end(number))
            if first is not None and first.prev and first.prev_born_ns < self._end(number - 1):
                latest = max(latest, first.prev_born_ns)
        return latest

    def _latest_before_end(self) -> int:
        ends = [stream.end for stream in self._streams.values() if stream.end is not None]
        return max((end.prev_born_ns for end in ends if end.prev), default=-1)

    def _limit_of_ended(self) -> int | None:
        if any(stream.end is None for stream in self._streams.values()):
            return None
        before = self._latest_before_end()
        return 1 if before < 0 else self._last_with(before) + 1

    def _done_when_settled(self, stream: InputStream) -> int:
        if stream.end_settled and self._limit is not None:
            return self._limit
        born_ns = stream.settled_born_ns()
        return 0 if born_ns is None else self._last_with(born_ns)


class TauAssembler(WindowAssembler):
    """Unit τ has the items of all inputs at position τ, one stream each.

    If an input has nothing at τ, the unit exists without that input. The first end of an input ends the
    output: what the others send after it is released.
    """

    def _needed_by(self, item: StreamTuple) -> tuple[int, int]:
        return item.tau, item.tau

    def _ended_by(self, run: Run) -> float:
        return run.last

    def _begun_before(self, run: Run) -> float:
        return run.first - 1

    def _is_complete(self, number: int) -> bool:
        return all(stream.knows(number, number) for stream in self._streams.values())

    def _unit(self, number: int, items: Items) -> Unit:
        found = [stream.at_or_after(number) for stream in self._streams.values()]
        at = [item for item in found if item is not None]
        prev = max(item.prev for item in at)
        prev_born_ns = max(item.prev_born_ns if item.prev else 0 for item in at)
        ended = number == self._limit
        here = [item.born_ns if item.tau == number else item.prev_born_ns for item in at]
        if prev >= number or None in found:
            # In best effort a late unit may no longer know which one came before it.
            here = [item.born_ns for item in at if item.tau == number] or [0]
            prev, prev_born_ns = number - 1, max(here)
        return Unit(
            self._name, number, prev, max(here), prev_born_ns, {} if ended else by_input(items), last=ended
        )

    def _limit_of_ended(self) -> int | None:
        return min((s.end.tau for s in self._streams.values() if s.end is not None), default=None)

    def _done_when_settled(self, stream: InputStream) -> int:
        return stream.settled_until
