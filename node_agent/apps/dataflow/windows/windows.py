"""The bookkeeping that windows and joins have in common: units of several items.

Units are numbered by their position in the output stream. An item is needed by a span of units. Inputs are
released in the order of the units that need them. So what upstream knows to be done is always the beginning
of a stream, and shows which units are done.
"""

from abc import ABC, abstractmethod
from bisect import bisect_right, insort
from collections.abc import Iterable, Iterator, Sequence
from math import inf

from msgspec import structs

from node_agent.apps.dataflow.model.tuples import Position, StreamTuple
from node_agent.apps.dataflow.windows.runs import InputStream, Joined, Run
from node_agent.apps.dataflow.windows.units import Gaps, HandedOver, Unit, Units
from node_agent.model.intervals import Intervals

_NO_NEWS = inf, 0.0


class WindowAssembler(ABC):
    """Base of the assemblers in ``window_rules``, which say which units an item is part of."""

    def __init__(self, name: str, streams: tuple[tuple[str, str], ...], gaps: Gaps | None = None) -> None:
        self._name = name
        self._streams = {key: InputStream(place, key[0]) for place, key in enumerate(streams)}
        self._gaps = gaps
        self._members: dict[int, list[tuple[InputStream, int]]] = {}
        self._open: list[int] = []
        self._undone: list[int] = []
        self._limit: int | None = None
        self._news: tuple[float, float] = _NO_NEWS
        self._floor = 0
        self._arrived = 0
        self._late: dict[int, int] = {}
        self._abandoned = Intervals()
        self._made = Intervals()
        self._released: list[Position] = []
        self._unused: list[StreamTuple] = []

    @abstractmethod
    def _needed_by(self, item: StreamTuple) -> tuple[int, int]:
        """Returns the first and the last unit that an item, not an end, is part of."""

    @abstractmethod
    def _ended_by(self, run: Run) -> float:
        """Returns the last unit whose end ``run`` has reached."""

    @abstractmethod
    def _begun_before(self, run: Run) -> float:
        """Returns the last unit that needs something from before ``run``; 0 if none does."""

    @abstractmethod
    def _is_complete(self, number: int) -> bool: ...

    @abstractmethod
    def _unit(self, number: int, items: list[tuple[InputStream, StreamTuple]]) -> Unit: ...

    @abstractmethod
    def _limit_of_ended(self) -> int | None:
        """Returns the number of the unit that ends the output, once it is known."""

    @abstractmethod
    def _done_when_settled(self, stream: InputStream) -> int:
        """Returns the last unit that must be done, given what of ``stream`` is settled."""

    def add(self, upstream: str, item: StreamTuple) -> list[Unit]:
        stream = self._streams[upstream, item.origin]
        if stream.contradicts(item):
            return []
        news_of_end = (
            item.last and stream.end is None
        )  # sent again to a replica that takes over, even if it is done
        if item.tau in stream.held or (item.tau in stream.seen and not news_of_end):
            if item.tau not in stream.held:
                self._released.append(Position(upstream, item.origin, item.tau))
                if self._gaps is not None and not item.last:  # too late: its units were given up
                    self._unused.append(item)
            return []
        self._note(stream.add(item))
        self._arrived += 1
        if not item.last:
            self._enlist(stream, item)
        elif (limit := self._limit_of_ended()) is not None:
            self._set_limit(limit)
        for other in self._streams.values() if item.last else (stream,):
            self._raise_floor(self._done_when_settled(other))
        units = list(self._completed())
        if self._gaps is not None:
            units += self._given_up(self._gaps)
            for numbers in (self._abandoned, self._made):
                while len(numbers) > self._gaps.horizon:
                    numbers.drop_lowest()
            stream.trim(self._gaps.horizon, self._gaps.held)
        self._release()
        return units

    def done(self, origin: str, tau: int) -> None:
        if tau in self._members and tau not in self._open:
            del self._members[tau]
            self._undone.remove(tau)
            self._release()

    def settled(self, upstream: str, origin: str, until: int) -> None:
        stream = self._streams[upstream, origin]
        if (joined := stream.settle(until)) is not None:
            self._note(joined)
        self._raise_floor(self._done_when_settled(stream))
        self._release()

    def floor(self) -> int:
        return self._floor

    def released(self) -> list[Position]:
        released, self._released = self._released, []
        return released

    def unused(self) -> list[StreamTuple]:
        unused, self._unused = self._unused, []
        return unused

    def holding(self) -> list[tuple[str, StreamTuple]]:
        wanted = frozenset(self._open)
        return [
            (stream.upstream, item)
            for stream in self._streams.values()
            for _, item in sorted(stream.held.items())
            if item.last or self._is_wanted(item, wanted)
        ]

    def hand_over(self) -> HandedOver:
        items = self.holding()
        spans = [self._needed_by(item) for _, item in items if not item.last]
        first, last = min((span[0] for span in spans), default=1), max((span[1] for span in spans), default=0)
        made = [(begin, end) for begin, end in self._made if begin <= last and end >= first]
        for number in [number for number in self._open if number != self._limit]:
            self._close(number)
        if self._limit in self._open:
            self._members[self._limit] = []  # it only says that the output ends
        for upstream, item in items:
            if not item.last:
                self._streams[upstream, item.origin].forget(item)
        self._release()
        return HandedOver(items, made)

    def made_elsewhere(self, upstream: str, items: Sequence[StreamTuple], made: Iterable[Units]) -> None:
        for first, last in made:
            self._made.add(first, last)
        for item in items:
            if not item.last and self._made.overlaps(*self._needed_by(item)):
                self._streams[upstream, item.origin].used.add(item.tau)
        for number in [number for number in self._open if number in self._made]:
            for stream, tau in self._members[number]:
                stream.used.add(tau)
            self._close(number)
        self._release()

    def _is_wanted(self, item: StreamTuple, wanted: frozenset[int]) -> bool:
        first, last = self._needed_by(item)
        return any(number in wanted for number in range(first, last + 1))

    def held(self, upstream: str, origin: str) -> int:
        return len(self._streams[upstream, origin].held)

    def _last_need(self, item: StreamTuple) -> float:
        """Returns the last unit that needs ``item``."""
        limit = inf if self._limit is None else self._limit
        return limit if item.last else min(limit, self._needed_by(item)[1])

    def _enlist(self, stream: InputStream, item: StreamTuple) -> None:
        first, last = self._needed_by(item)
        if self._limit is not None:
            last = min(last, self._limit - 1)
        for number in range(max(first, self._floor + 1), last + 1):
            if number not in self._abandoned and number not in self._made:
                self._member_list(number).append((stream, item.tau))

    def _member_list(self, number: int) -> list[tuple[InputStream, int]]:
        if number not in self._members:
            self._members[number] = []
            insort(self._open, number)
            insort(self._undone, number)
        return self._members[number]

    def _set_limit(self, limit: int) -> None:
        if limit == self._limit:
            return
        self._limit = limit
        for number in [number for number in self._undone if number > limit]:
            self._close(number)
        if limit > self._floor:
            self._member_list(limit)

    def _passed(self, without_gap: bool) -> float:
        """Returns the last unit whose end all streams have reached."""
        return min([self._ended_by(stream.reached(without_gap)) for stream in self._streams.values()])

    def _note(self, joined: Joined) -> None:
        """Notes which units may have become complete: those in the run that were not in its older parts.

        A stream with missing items keeps many units open, and checking all of them for every item would be
        slow.
        """
        run, before, after = joined
        above, until = self._begun_before(run), self._ended_by(run)
        if before is not None:
            above = max(above, self._ended_by(before))
        if after is not None:
            until = min(until, self._begun_before(after))
        if above < until:
            self._news = min(self._news[0], above), max(self._news[1], until)

    def _candidates(self) -> list[int]:
        """Returns open units that may be complete; all of them where gaps are given up, because then few are
        open.
        """
        passed, (above, until) = self._passed(without_gap=False), self._news
        self._news = _NO_NEWS
        if self._gaps is not None:
            above, until = 0, inf
        begin, end = (bisect_right(self._open, number) for number in (above, min(until, passed)))
        candidates = self._open[begin:end]
        last = self._open[-1:]
        if last == [self._limit] != candidates[-1:] and last[0] <= passed:
            candidates += last  # the end may have moved
        return candidates

    def _completed(self) -> Iterator[Unit]:
        for number in self._candidates():
            if self._is_complete(number):
                self._late.pop(number, None)
                self._open.remove(number)
                yield self._hand_out(number)
            elif self._gaps is not None:
                self._late.setdefault(number, self._arrived)

    def _hand_out(self, number: int) -> Unit:
        unit = self._unit(number, self._items(number))
        if self._gaps is not None:  # its items may arrive again from a sibling
            self._made.add(number)
        first_open = self._open[0] if self._open else inf
        for stream, tau in () if unit.last else self._members[number]:
            stream.used.add(tau)
            item = stream.held[tau]
            if self._last_need(item) < first_open:  # from now on only its position matters
                stream.held[tau] = structs.replace(item, payloads=())
        return unit

    def _items(self, number: int) -> list[tuple[InputStream, StreamTuple]]:
        """Returns the items in the order of capture; those captured at the same time in the order of the
        streams.
        """
        members = [(stream, stream.held[tau]) for stream, tau in self._members[number]]
        return sorted(members, key=lambda member: (member[1].born_ns, member[0].place, member[1].tau))

    def _given_up(self, gaps: Gaps) -> Iterator[Unit]:
        overdue = [number for number, since in self._late.items() if self._arrived - since >= gaps.horizon]
        yield from filter(None, map(self._give_up, overdue))
        while sum(len(stream.held) for stream in self._streams.values()) > gaps.held:
            items = [item for stream in self._streams.values() if (item := stream.oldest()) and not item.last]
            if not items:
                return
            floor = int(min(self._last_need(item) for item in items))
            yield from filter(None, map(self._give_up, [n for n in self._open if n <= floor]))
            self._floor = max(self._floor, floor)
            self._release()

    def _give_up(self, number: int) -> Unit | None:
        items = self._items(number)
        self._close(number)
        self._abandoned.add(number)
        if not items:
            return None
        born_ns = max(item.born_ns for _, item in items)
        return Unit(self._name, number, 0, born_ns, 0, by_input(items), complete=False)

    def _close(self, number: int) -> None:
        del self._members[number]
        self._undone.remove(number)
        self._late.pop(number, None)
        if number in self._open:
            self._open.remove(number)

    def _raise_floor(self, floor: int) -> None:
        if floor > self._floor:
            self._floor = floor
            for number in [number for number in self._undone if number <= floor]:
                for stream, tau in self._members[number]:
                    stream.used.add(tau)
                self._close(number)

    def _release(self) -> None:
        until = self._passed(without_gap=self._gaps is None)
        if self._undone:
            until = min(until, self._undone[0] - 1)
        until = max(until, self._floor)
        for (upstream, origin), stream in self._streams.items():
            known = inf if self._gaps is not None else stream.reached(without_gap=True).last
            for item in stream.release(lambda i: i.tau <= known and self._last_need(i) <= until):  # noqa: B023
                self._released.append(Position(upstream, origin, item.tau))
                if item.tau in stream.used:
                    stream.used.discard(item.tau)
                elif not item.last:
                    self._unused.append(item)


def by_input(items: list[tuple[InputStream, StreamTuple]]) -> dict[str, tuple[StreamTuple, ...]]:
    """Groups ``items`` by input: inputs in their own order, items in the order given."""
    inputs: dict[str, list[StreamTuple]] = {}
    for _, upstream in sorted({(stream.place, stream.upstream) for stream, _ in items}):
        inputs.setdefault(upstream, [])
    for stream, item in items:
        inputs[stream.upstream].append(item)
    return {upstream: tuple(group) for upstream, group in inputs.items()}
