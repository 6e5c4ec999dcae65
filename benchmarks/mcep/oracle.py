"""What a query must deliver in each epoch, from all atomic events, by the definitions alone.

Shares with the machines the values (events, windows, graphs) and no code: it has all events of an epoch at
once, looks at one restriction window after another, and goes through plain lists.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Any

from benchmarks.mcep.worlds import World, lies_in
from node_agent.apps.mcep.channel import Marker
from node_agent.apps.mcep.geometry import Box, Circle, Place, Point, Region
from node_agent.apps.mcep.model import Event
from node_agent.apps.mcep.windows import (
    AtLeast,
    Both,
    ByEvents,
    ByTime,
    Count,
    Dependency,
    Either,
    Exactly,
    Full,
    Operator,
    Predicate,
    Selection,
    Span,
    Stay,
    Step,
    ToNewest,
    Window,
)


def order(event: Event) -> tuple[float, int, str]:
    return event.t, event.seq, event.source


class Oracle:
    """``markers``: the switches that there were; the last one ends the query."""

    def __init__(self, world: World, markers: Sequence[Marker]) -> None:
        self._world, self._markers = world, list(markers)
        self._graph = world.query.graph
        self._made: dict[tuple[str, int, int], list[Event]] = {}

    def expected(self, epoch: int) -> list[Event]:
        """Results of an epoch (from 1 on) in order."""
        marker, until = self._markers[epoch - 1], self._markers[epoch].t
        found = []
        for stream in self._graph.streams:
            if stream.successor == "consumer":
                found += [
                    each
                    for each in self._produced(stream.producer, epoch, until)
                    if all(only.accepts(each) for only in stream.only)
                ]
        earliest = marker.t - self._world.query.history
        return sorted((each for each in found if each.t >= earliest), key=order)

    def _begun(self, name: str, epoch: int) -> int:
        """The last epoch in which a node was sent anew, or began anew."""
        below = self._below(name)
        while epoch > 1 and not below & self._markers[epoch - 1].touched:
            epoch -= 1
        return epoch

    def _below(self, name: str) -> set[str]:
        producers = [stream.producer for stream in self._graph.streams if stream.successor == name]
        return set().union(*(self._below(each) for each in producers)) if producers else {name}

    def _produced(self, name: str, epoch: int, until: float) -> list[Event]:
        """All that a node produced before ``until`` since it last began anew."""
        first = self._begun(name, epoch)
        last = epoch if self._markers[epoch - 1].t < until else epoch - 1
        if (name, first, last) not in self._made:
            operator = next((each for each in self._graph.operators if each.name == name), None)
            made = (
                self._of_operator(operator, first, until) if operator else self._of_source(name, first, epoch)
            )
            self._made[name, first, last] = made
        return self._made[name, first, last]

    def _of_source(self, name: str, first: int, epoch: int) -> list[Event]:
        type = next(each.type for each in self._graph.sources if each.name == name)
        found = []
        for number in range(first, epoch + 1):
            marker, until = self._markers[number - 1], self._markers[number].t
            since = marker.points[name] if number == first else marker.t
            region = marker.region
            if region is not None:
                found += [
                    each
                    for each in self._world.events
                    if each.type == type and since <= each.t < until and lies_in(region, each.place)
                ]
        return found

    def _of_operator(self, operator: Operator, first: int, until: float) -> list[Event]:
        marker = self._markers[first - 1]
        epoch = next(n for n in range(first, len(self._markers)) if self._markers[n].t >= until)
        inputs: dict[str, list[Event]] = {}
        for stream in self._graph.streams:
            if stream.successor == operator.name:
                events = self._produced(stream.producer, epoch, until)
                events = [each for each in events if all(only.accepts(each) for only in stream.only)]
                if self._begun(stream.producer, first) < first:
                    events = [each for each in events if each.t >= marker.points[stream.producer]]
                inputs[stream.producer] = events
        return Run(
            operator, inputs, marker.points[operator.name], until, self._markers[first - 1 :]
        ).outputs()


class Run:
    """One operator over all its input."""

    def __init__(
        self, operator: Operator, inputs: dict[str, list[Event]], point: float, until: float,
        markers: list[Marker],
    ) -> None:  # fmt: skip
        self.operator, self.point, self.until, self.markers = operator, point, until, markers
        everything = sorted(((e, s) for s, es in inputs.items() for e in es), key=lambda pair: order(pair[0]))
        self.parts: dict[Any, list[tuple[Event, str]]] = {} if operator.partition else {None: []}
        for event, stream in everything:
            self.parts.setdefault(self._part(event), []).append((event, stream))

    def _part(self, event: Event) -> Any:
        partition = self.operator.partition
        if partition is None:
            return None
        if partition.by == "source":
            return event.source.split(" ")[0]
        if partition.by == "attribute":
            return event.attributes.get(partition.attribute, "")
        corner = event.place if isinstance(event.place, Point) else Point(event.place.x0, event.place.y0)
        return corner.x // partition.cell, corner.y // partition.cell

    def outputs(self) -> list[Event]:
        steps = []
        for number, (part, events) in enumerate(self.parts.items()):
            for end, initial, selection, step in self._steps(events):
                steps.append((end, number, part, initial, selection, step))
        steps.sort(key=lambda each: each[:2])
        made: list[Event] = []
        last, count = -math.inf, 0
        for _, _, part, initial, selection, step in steps:
            seen_events = selection.events
            for number, output in enumerate(step.outputs):
                name = self.operator.name
                if self.operator.reuse == "local":
                    seen = seen_events[0]
                    t, count = seen.t, seen.seq
                    source = f"{seen.source} {name}" + (f" {number}" if number else "")
                else:
                    t = max(each.t for each in seen_events) if initial and seen_events else selection.end
                    count = 0 if t > last else count + 1
                    t = max(t, last)
                    by_source = self.operator.partition and self.operator.partition.by == "source"
                    source = f"{part} {name}" if by_source else name
                last = t
                ancestors = frozenset(atom for each in seen_events for atom in each.provenance)
                place = output.place or self._place(seen_events, selection.region)
                made.append(Event(t, count, source, output.type, place, output.attributes, 0, 0, ancestors))
        return [each for each in made if each.t >= self.point]

    def _in_force(self, t: float) -> tuple[int, Region | None]:
        """The epoch and region in which the operator is at a time."""
        marker = [self.markers[0], *(each for each in self.markers[1:] if each.t <= t)][-1]
        return marker.epoch, marker.region

    def _place(self, events: list[Event], region: Region | None) -> Place:
        boxes = [e.place if isinstance(e.place, Box) else Box(e.place.x, e.place.y, *e.place) for e in events]
        if not boxes:
            if isinstance(region, Box):
                return region
            if isinstance(region, Circle):
                x, y, r = region.x, region.y, region.radius
                return Box(x - r, y - r, x + r, y + r)
            corners = region.corners if region else (Point(0.0, 0.0),)
            boxes = [Box(x, y, x, y) for x, y in corners]
        around = Box(
            min(b.x0 for b in boxes),
            min(b.y0 for b in boxes),
            max(b.x1 for b in boxes),
            max(b.y1 for b in boxes),
        )
        if (around.x0, around.y0) == (around.x1, around.y1):
            return Point(around.x0, around.y0)
        return around

    def _ends(self, events: list[tuple[Event, str]]) -> list[tuple[tuple[Any, ...], float, bool]]:
        """Where the restriction window ends, one after another: in the order of events, its time, if it is
        the first."""
        restriction = self.operator.restriction
        begins_late = self.operator.partition is not None and events[0][0].t > self.point
        found = [] if begins_late else [((self.point, math.inf), self.point, True)]
        if isinstance(restriction.shift, ByTime):
            t = self.point + restriction.shift.seconds
            while begins_late and t < events[0][0].t:
                t += restriction.shift.seconds
            while t < self.until:
                found.append(((t, math.inf), t, False))
                t += restriction.shift.seconds
            return found
        following = [
            event for event, stream in events if event.t > self.point and restriction.stream in (None, stream)
        ]
        size = restriction.shift.events
        return found + [(order(each), each.t, False) for each in following[size - 1 :: size]]

    def _steps(self, events: list[tuple[Event, str]]) -> list[tuple[Any, bool, Selection, Step]]:
        found = []
        gone: set[tuple[str, tuple[float, int, str]]] = set()
        keys = [order(event) for event, _ in events]
        for end, t, initial in self._ends(events):
            start = t - self.operator.restriction.length
            inside = events[bisect_left(keys, (start,)) : bisect_right(keys, end)]

            def visible(stream: str, inside: list[tuple[Event, str]] = inside) -> list[Event]:
                return [e for e, s in inside if s == stream and (s, order(e)) not in gone]

            positions: dict[str, Any] = {
                w.name: (start,) if w.begin == "oldest" else end for w in self.operator.windows
            }
            before: Any = None
            while True:
                own = {
                    w.name: self._take(w, positions[w.name], visible(w.stream)) for w in self.operator.windows
                }
                chosen = self._bounded(own, visible)
                if chosen != before:
                    before = chosen
                    if self._is_true(self.operator.when, chosen):
                        selection = Selection(
                            {name: tuple(es) for name, es in chosen.items()}, t, *self._in_force(t)
                        )
                        step = self.operator.correlate(selection)
                        found.append((end, initial, selection, step))
                        self._eat(chosen, step, gone, visible)
                        if step.finished:
                            break
                moved = {}
                for w in self.operator.windows:
                    position = self._moved(w, positions[w.name], own[w.name], visible(w.stream), start, t)
                    if position is not None:
                        moved[w.name] = position
                if not moved:
                    break
                positions |= moved
        return found

    def _take(self, window: Window, position: Any, events: list[Event]) -> list[Event]:
        if window.begin == "newest":
            until = [each for each in events if order(each) <= position]
            if isinstance(window.length, Count):
                return until[-window.length.events :]
            assert isinstance(window.length, Span)
            return [each for each in until if each.t > position[0] - window.length.seconds]
        return self._take_from(window, position[0], [each for each in events if order(each) >= position])

    def _take_from(self, window: Window, start: float, events: list[Event]) -> list[Event]:
        if isinstance(window.length, Count):
            return events[: window.length.events]
        if isinstance(window.length, Span):
            return [each for each in events if each.t < start + window.length.seconds]
        taken: list[Event] = []
        for each in events:
            taken.append(each)
            assert self.operator.ends is not None
            if self.operator.ends(tuple(taken)):
                break
        return taken

    def _moved(
        self, window: Window, position: Any, own: list[Event], events: list[Event], start: float, end: float
    ) -> Any:
        candidates: list[Any] = []
        shift = window.shift
        if isinstance(shift, Stay) or (not events and not isinstance(shift, ByTime)):
            return None
        if isinstance(shift, ByEvents):
            at = position if not own else order(own[0] if window.begin == "oldest" else own[-1])
            later = [order(each) for each in events if order(each) > at]
            earlier = [order(each) for each in events if order(each) < at][::-1]
            ahead, size = (later, shift.events) if shift.events > 0 else (earlier, -shift.events)
            candidates = ahead[size - 1 : size]
        elif isinstance(shift, ByTime):
            t = position[0] + shift.seconds
            while start <= t <= end:
                candidates.append((t,) if window.begin == "oldest" else (t, math.inf))
                t += shift.seconds
        else:
            candidates = [order(events[-1] if isinstance(shift, ToNewest) else events[0])]
        for candidate in candidates:
            if any(each not in own for each in self._take(window, candidate, events)):
                return candidate
        return None

    def _bounded(self, own: dict[str, list[Event]], visible: Any) -> dict[str, list[Event]]:
        chosen = dict(own)
        waiting = list(self.operator.dependencies)
        while waiting:
            each = next(
                d for d in waiting if not any(d.other == other.window for other in waiting if other != d)
            )
            waiting.remove(each)
            window = next(w for w in self.operator.windows if w.name == each.window)
            chosen[each.window] = self._bound(window, each, chosen, visible(window.stream))
        return chosen

    def _bound(
        self, window: Window, dependency: Dependency, chosen: dict[str, list[Event]], events: list[Event]
    ) -> list[Event]:
        mine, other = chosen[dependency.window], chosen[dependency.other]
        if not mine or not other:
            return mine
        bound = other[0].t if dependency.other_point == "start" else other[-1].t
        relation = dependency.relation

        def fits(t: float) -> bool:
            return t < bound if relation == "<" else t > bound if relation == ">" else _or_equal(t)

        def _or_equal(t: float) -> bool:
            return t <= bound if relation == "<=" else t >= bound

        if fits(mine[0].t if dependency.point == "start" else mine[-1].t):
            return mine
        if not isinstance(window.length, Count | Span):
            return [each for each in mine if fits(each.t)]
        fitting = [each for each in events if fits(each.t)]
        if not fitting:
            return []
        edge = fitting[-1] if "<" in dependency.relation else fitting[0]
        if dependency.point == "start":
            return self._take_from(window, edge.t, [each for each in events if order(each) >= order(edge)])
        until = [each for each in events if order(each) <= order(edge)]
        if isinstance(window.length, Count):
            return until[-window.length.events :]
        return [each for each in until if each.t > edge.t - window.length.seconds]

    def _is_true(self, predicate: Predicate, chosen: dict[str, list[Event]]) -> bool:
        if isinstance(predicate, Both):
            return all(self._is_true(each, chosen) for each in predicate.parts)
        if isinstance(predicate, Either):
            return any(self._is_true(each, chosen) for each in predicate.parts)
        size = len(chosen[predicate.window])
        if isinstance(predicate, AtLeast):
            return size >= predicate.events
        if isinstance(predicate, Exactly):
            return size == predicate.events
        assert isinstance(predicate, Full)
        window = next(each for each in self.operator.windows if each.name == predicate.window)
        return isinstance(window.length, Count) and size == window.length.events

    def _eat(self, chosen: dict[str, list[Event]], step: Step, gone: set[Any], visible: Any) -> None:
        what, size = self.operator.consumption.what, self.operator.consumption.events
        for window in self.operator.windows:
            events = chosen[window.name]
            eaten: list[Event] = []
            if what == "all":
                eaten = events
            elif what == "first":
                eaten = events[:size]
            elif what == "last":
                eaten = events[-size:]
            elif what == "named":
                eaten = [each for each in events if each.id in step.consumed]
                eaten = eaten + [each for each in visible(window.stream) if each.t < step.consumed_before]
            gone |= {(window.stream, order(each)) for each in eaten}
