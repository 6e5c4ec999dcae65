"""Which events windows select inside one restriction window, step by step (thesis, Alg. 3.2).

All events up to the end of a restriction window are known before it is looked at, so the steps in it are a
function of these events: what arrived when makes no difference. A window has a position, an event or a
time: its first event if it began at the oldest, its last if it began at the newest. It is shifted from
there by its own policy; a dependency that is violated then moves what it selects in this step, not its
position.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import NamedTuple

from node_agent.apps.mcep.geometry import Region
from node_agent.apps.mcep.model import Event, Mark, just_after, just_before
from node_agent.apps.mcep.windows import (
    ByEvents,
    ByTime,
    Consume,
    Count,
    Dependency,
    Open,
    Operator,
    Selection,
    Span,
    Stay,
    Step,
    ToNewest,
    ToOldest,
    Window,
    dependency_order,
    holds,
)

Events = list[Event]
Correlate = Callable[[Selection], Step]


class Restricted(NamedTuple):
    """Where a restriction window is: from a time on, to an event or a time."""

    start: float
    end: Mark
    t: float
    """The time of its end."""


class Selector:
    """Makes the steps of one operator. Has no state between restriction windows."""

    def __init__(self, operator: Operator) -> None:
        self._operator = operator
        self._windows = {window.name: window for window in operator.windows}
        self._order = dependency_order(operator)
        self._dependencies: dict[str, list[Dependency]] = {name: [] for name in self._order}
        for each in operator.dependencies:
            self._dependencies[each.window].append(each)
        self._full = {w.name: w.length.events for w in operator.windows if isinstance(w.length, Count)}

    def steps(
        self,
        buffers: MutableMapping[str, Events],
        at: Restricted,
        correlate: Correlate,
        epoch: int,
        region: Region | None,
    ) -> Iterator[tuple[Selection, Step]]:
        """Yields what was selected and what came of it. Takes consumed events out of ``buffers``, which
        hold those of each stream from the restriction window's start on, in order."""
        inside = {name: _up_to(events, at.end) for name, events in buffers.items()}
        positions = {
            name: just_before(at.start) if window.begin == "oldest" else at.end
            for name, window in self._windows.items()
        }
        before: dict[str, tuple[Event, ...]] | None = None
        while True:
            by_policy = {
                name: self._content(window, positions[name], inside[window.stream])
                for name, window in self._windows.items()
            }
            chosen = self._respecting(by_policy, inside)
            if chosen != before:
                before = chosen
                counts = {name: len(events) for name, events in chosen.items()}
                if holds(self._operator.when, counts, self._full):
                    selection = Selection(chosen, at.t, epoch, region)
                    step = correlate(selection)
                    yield selection, step
                    self._consume(selection, step, buffers, inside)
                    if step.finished:
                        return
            moved = False
            for name, window in self._windows.items():
                position = self._shifted(window, positions[name], by_policy[name], inside[window.stream], at)
                if position is not None:
                    positions[name], moved = position, True
            if not moved:
                return

    def _content(self, window: Window, position: Mark, events: Events) -> tuple[Event, ...]:
        if window.begin == "newest":
            last = bisect_right(events, position, key=_key)
            match window.length:
                case Count(n):
                    return tuple(events[max(0, last - n) : last])
                case Span(seconds):
                    first = bisect_right(events, just_after(_time(position) - seconds), key=_key)
                    return tuple(events[first:last])
                case Open():
                    raise AssertionError("an open window begins at the oldest event")
        return self._from(window, bisect_left(events, position, key=_key), _time(position), events)

    def _from(self, window: Window, first: int, start: float, events: Events) -> tuple[Event, ...]:
        """What a window takes that begins at this index and time."""
        match window.length:
            case Count(n):
                return tuple(events[first : first + n])
            case Span(seconds):
                return tuple(events[first : bisect_left(events, just_before(start + seconds), key=_key)])
            case Open():
                ends = self._operator.ends
                assert ends is not None, "checked by check_operator"
                for last in range(first + 1, len(events) + 1):
                    if ends(tuple(events[first:last])):
                        return tuple(events[first:last])
                return tuple(events[first:])

    def _shifted(
        self, window: Window, position: Mark, content: tuple[Event, ...], events: Events, at: Restricted
    ) -> Mark | None:
        """Its next position if that selects an event that the last one did not select, else None."""
        seen = {each.key for each in content}

        def fresh(candidate: Mark) -> Mark | None:
            found = self._content(window, candidate, events)
            return candidate if any(each.key not in seen for each in found) else None

        match window.shift:
            case Stay():
                return None
            case ToNewest():
                return fresh(events[-1].key) if events else None
            case ToOldest():
                return fresh(events[0].key) if events else None
            case ByEvents(count):
                origin = position if not content else content[0 if window.begin == "oldest" else -1].key
                index = (
                    bisect_right(events, origin, key=_key) + count - 1
                    if count > 0
                    else bisect_left(events, origin, key=_key) + count
                )
                return fresh(events[index].key) if 0 <= index < len(events) else None
            case ByTime(seconds):
                mark = just_before if window.begin == "oldest" else just_after
                times = 1
                while at.start <= (t := _time(position) + times * seconds) <= at.t:
                    if fresh(mark(t)):
                        return mark(t)
                    times += 1
                return None

    def _respecting(
        self, by_policy: Mapping[str, tuple[Event, ...]], inside: Mapping[str, Events]
    ) -> dict[str, tuple[Event, ...]]:
        chosen = dict(by_policy)
        for name in self._order:
            for each in self._dependencies[name]:
                other, own = chosen[each.other], chosen[name]
                if other and own:
                    bound = _point(other, each.other_point)
                    if not _is_in_relation(_point(own, each.point), each.relation, bound):
                        window = self._windows[name]
                        chosen[name] = self._clipped(window, own, inside[window.stream], each, bound)
        return {window.name: chosen[window.name] for window in self._operator.windows}

    def _clipped(
        self, window: Window, own: tuple[Event, ...], events: Events, dependency: Dependency, bound: float
    ) -> tuple[Event, ...]:
        """The nearest selection that keeps the relation; empty if there is none."""
        below = dependency.relation in ("<", "<=")
        if isinstance(window.length, Open):
            return tuple(each for each in own if _is_in_relation(each.t, dependency.relation, bound))
        mark = just_before(bound) if dependency.relation in ("<", ">=") else just_after(bound)
        index = bisect_left(events, mark, key=_key) - (1 if below else 0)
        if not 0 <= index < len(events):
            return ()
        anchor = events[index]
        if dependency.point == "start":
            return self._from(window, index, anchor.t, events)
        match window.length:
            case Count(n):
                return tuple(events[max(0, index + 1 - n) : index + 1])
            case Span(seconds):
                first = bisect_right(events, just_after(anchor.t - seconds), key=_key)
                return tuple(events[first : index + 1])

    def _consume(
        self,
        selection: Selection,
        step: Step,
        buffers: MutableMapping[str, Events],
        inside: dict[str, Events],
    ) -> None:
        named = self._operator.consumption.what == "named"
        before = step.consumed_before if named else -math.inf
        for stream, keys in self._gone(selection, step).items():
            keys.update(each.key for each in inside[stream] if each.t < before)
            if keys:
                inside[stream] = [each for each in inside[stream] if each.key not in keys]
                buffers[stream] = [each for each in buffers[stream] if each.key not in keys]

    def _gone(self, selection: Selection, step: Step) -> dict[str, set[Mark]]:
        """By stream, what is consumed."""
        gone: dict[str, set[Mark]] = {window.stream: set() for window in self._operator.windows}
        for name, events in selection.windows.items():
            match self._operator.consumption:
                case Consume("all"):
                    taken = list(events)
                case Consume("first", n):
                    taken = list(events[:n])
                case Consume("last", n):
                    taken = list(events[-n:])
                case Consume("named"):
                    taken = [each for each in events if each.id in step.consumed]
                case _:
                    taken = []
            gone[self._windows[name].stream].update(each.key for each in taken)
        return gone


def _up_to(events: Events, end: Mark) -> Events:
    """The list itself if all are, since nobody changes it: those that were consumed leave by a new list."""
    if not events or events[-1].key <= end:
        return events
    return events[: bisect_right(events, end, key=_key)]


def _key(event: Event) -> Mark:
    return event[:3]


def _time(mark: Mark) -> float:
    t = mark[0]
    assert isinstance(t, float | int)
    return t


def _point(events: tuple[Event, ...], point: str) -> float:
    return events[0 if point == "start" else -1].t


def _is_in_relation(own: float, relation: str, other: float) -> bool:
    match relation:
        case "<":
            return own < other
        case "<=":
            return own <= other
        case ">":
            return own > other
        case _:
            return own >= other
