"""Runs one operator (thesis, Alg. 3.1): from messages on its channels to messages on its outgoing streams.

Events pass the gate in order into buffers. The restriction window moves through them; where it stands, all
events up to its end are known, and ``selection`` makes the steps. A marker that has come on all channels
ends the epoch: it is sent on, buffers are emptied, and the restriction window begins anew at the
initialization point.

    operator = Execution(graph, "accident", inlets)
    for stream, message in operator.receive(ChannelId("slow"), event):
        ...
"""

import math
from collections.abc import Mapping
from typing import NamedTuple

from node_agent.apps.mcep.channel import ChannelId, Heartbeat, Inlet, Marker, Message
from node_agent.apps.mcep.collect import Observed
from node_agent.apps.mcep.gate import Gate
from node_agent.apps.mcep.geometry import Point, bounds, enclosing
from node_agent.apps.mcep.graph import OperatorGraph, Stream, fan_out
from node_agent.apps.mcep.model import BEGINNING, AtomicId, Event, Mark
from node_agent.apps.mcep.restriction import Part
from node_agent.apps.mcep.reuse.lineage import inherited
from node_agent.apps.mcep.selection import Selector
from node_agent.apps.mcep.standing import PartName, PartStanding, Standing
from node_agent.apps.mcep.suppression import Repeats, Reused, omits
from node_agent.apps.mcep.windows import ByTime, Operator, Selection, Step

Sent = tuple[Stream, Message]


class Counts(NamedTuple):
    """``processed``: selections that were correlated; ``reused``: that were not, as the last epoch's
    results hold."""

    processed: int = 0
    reused: int = 0
    outputs: int = 0


class Stamps:
    """Gives the outputs of an operator times, numbers and sources such that they are in order. ``point``:
    where its stream began when it last began anew."""

    def __init__(
        self, operator: Operator, point: float = -math.inf, last: tuple[float, int] = (-math.inf, 0)
    ) -> None:
        self._operator, self.point = operator, point
        self.last = last
        """Time of the last output, and how many have that time."""

    def stamp(
        self, selection: Selection, part: object, number: int, *, initial: bool
    ) -> tuple[float, int, str]:
        """Of the ``number``-th output of a selection.

        An output of a single event keeps that event's number, so it has the same whether others are there
        or not.
        """
        events, operator = selection.events, self._operator
        if operator.reuse == "local":
            seen = events[0]
            suffix = f" {number}" if number else ""
            return seen.t, seen.seq, f"{seen.source} {operator.name}{suffix}"
        t = max((each.t for each in events), default=selection.end) if initial else selection.end
        last, count = self.last
        t, seq = (t, 0) if t > last else (last, count + 1)
        self.last = (t, seq)
        by_source = operator.partition and operator.partition.by == "source"
        return t, seq, f"{part} {operator.name}" if by_source else operator.name


class Execution:
    """One operator. ``suppression``: the query's seconds of history if what the last epoch brought is used
    again. ``trace``: whether outputs name the atomic events they depend on."""

    def __init__(
        self,
        graph: OperatorGraph,
        name: str,
        inlets: Mapping[ChannelId, Inlet],
        *,
        strict: bool = True,
        suppression: float | None = None,
        trace: bool = True,
    ) -> None:
        self.operator = graph.by_name[name]
        self.gate = Gate(inlets, strict=strict)
        self.marker: Marker | None = None
        self.counts = Counts()
        self._streams = graph.outputs[name]
        self._selector = Selector(self.operator)
        self._sources = graph.below[name]
        self._trace = trace
        self._parts: dict[PartName, Part] = {}
        self._to_begin: dict[PartName, Part] = {}
        """Those whose restriction window has not been placed yet."""
        self._said: Mark = BEGINNING
        """The last heartbeat, or the last output."""
        self._stamps = Stamps(self.operator)
        self._reach: dict[str, float] = {}
        """By window, how long before the restriction window's end its first event was at most, in this
        epoch."""
        again = suppression is not None and omits(graph, name) == "logs"
        keep_s = (suppression or 0.0) + graph.additional_time(name)
        self._reused = Reused(keep_s) if again else None
        self._repeats = Repeats(keep_s) if again else None

    def receive(self, channel: ChannelId, message: Message) -> list[Sent]:
        """Takes a message and does all that can be done."""
        return fan_out(self._streams, self.work(channel, message))

    def work(self, channel: ChannelId, message: Message) -> list[Message]:
        """The same, before streams leave out what their restrictions exclude."""
        self.gate.receive(channel, message)
        return self.go_on()

    def look(self, patience: int) -> list[Sent]:
        """Best effort goes on without channels that bring nothing, see ``Gate.look``."""
        return fan_out(self._streams, self.go_on()) if self.gate.look(patience) else []

    def go_on(self) -> list[Message]:
        out: list[Message] = []
        while True:
            self._run(out)
            marker = self.gate.ended()
            if marker is None:
                break
            self._begin(marker, out)
        if self.marker is not None:
            self._say_how_far(out)
        return out

    @property
    def ended(self) -> bool:
        """Whether the query has ended here."""
        return self.marker is not None and self.marker.region is None

    @property
    def waiting(self) -> int:
        """Messages that wait here."""
        return self.gate.waiting

    def buffered(self) -> int:
        """Events in buffers and before the gate."""
        inside = sum(len(events) for part in self._parts.values() for events in part.buffers.values())
        return inside + sum(len(inlet.events) for inlet in self.gate.inlets.values())

    def observed(self) -> Observed:
        """What its windows hold and how far they reach back: for initialization points, and for a move of
        the operator to another machine, which needs its input since then."""
        gaps: dict[str, float] = {}
        oldest: dict[str, float | None] = {}
        for stream in self.operator.streams:
            times = sorted(each.t for part in self._parts.values() for each in part.buffers[stream])
            oldest[stream] = times[0] if times else None
            if len(times) > 1:
                gaps[stream] = (times[-1] - times[0]) / (len(times) - 1)
        return Observed(gaps, oldest, dict(self._reach))

    def standing(self) -> Standing | None:
        """Where it stands, so that another machine can go on from there (``resume``); None in the middle of
        a change of epochs. Not with ``suppression``."""
        if not self.gate.rests:
            return None
        parts = tuple(
            PartStanding(name, part.begun, part.end, part.end_t, name in self._to_begin, dict(part.buffers))
            for name, part in self._parts.items()
        )
        reach = dict(self._reach)
        own = (self.marker, self._stamps.point, self._said, self._stamps.last, reach, parts)
        return Standing(self.gate.standing(), *own)

    def resume(self, standing: Standing) -> None:
        """Goes on where another machine stood, whose ``buffers`` are known here."""
        self.gate.resume(standing.gate)
        self.marker, self._said = standing.marker, standing.said
        self._stamps = Stamps(self.operator, standing.point, standing.stamped)
        self._reach = dict(standing.reach)
        self._parts = {each.name: Part.resumed(self.operator, each) for each in standing.parts}
        self._to_begin = {each.name: self._parts[each.name] for each in standing.parts if each.to_begin}

    def _run(self, out: list[Message]) -> None:
        while (taken := self.gate.take()) is not None:
            channel, event = taken
            name, part = self._part_of(event)
            part.add(channel.producer, event)
            self._advance(event.key, {name: part}, out)
        self._advance(self.gate.known_to(), {}, out)

    def _part_of(self, event: Event) -> tuple[PartName, Part]:
        partition = self.operator.partition
        name = partition.part_of(event) if partition else None
        part = self._parts.get(name)
        if part is None:
            part = self._parts[name] = Part(self.operator, self._stamps.point)
            if event.t > part.end_t:
                part.skip_to(event.t)
            else:
                self._to_begin[name] = part
        return name, part

    def _advance(self, known_to: Mark, grown: Mapping[PartName, Part], out: list[Message]) -> None:
        """Moves restriction windows as far as events are known, the earliest end first. ``grown``: the parts
        that got an event; others need not be looked at, unless time alone moves them."""
        before = self.gate.limit()
        by_time = isinstance(self.operator.restriction.shift, ByTime)
        while True:
            first: tuple[tuple[Mark, float], PartName] | None = None
            for name, part in (self._parts if by_time else {**self._to_begin, **grown}).items():
                end = part.next_end(known_to, before)
                if end is not None and (first is None or end[0] < first[0][0]):
                    first = (end, name)
            if first is None:
                return
            end, name = first
            part = self._parts[name]
            initial = self._to_begin.pop(name, None) is not None
            at = part.move(end)
            for selection, step in self._selector.steps(
                part.buffers,
                at,
                self._correlate,
                self.gate.epoch,
                self.marker.region if self.marker else None,
            ):
                self._emit(name, selection, step, initial, out)

    def _correlate(self, selection: Selection) -> Step:
        known = self._reused.find(selection) if self._reused else None
        if known is not None:
            self.counts = self.counts._replace(reused=self.counts.reused + 1)
            return known.step
        self.counts = self.counts._replace(processed=self.counts.processed + 1)
        return self.operator.correlate(selection)

    def _emit(
        self, part: object, selection: Selection, step: Step, initial: bool, out: list[Message]
    ) -> None:
        self._note_reach(selection)
        events = selection.events
        made: list[Event] = []
        if step.outputs:
            place = enclosing(each.place for each in events)
            if place is None:
                place = bounds(selection.region) if selection.region else Point(0.0, 0.0)
            ancestors: frozenset[AtomicId] = frozenset()
            if self._trace:
                ancestors = frozenset().union(*(each.provenance for each in events))
            shared = inherited(events)
            for number, output in enumerate(step.outputs):
                t, seq, source = self._stamps.stamp(selection, part, number, initial=initial)
                epoch = self.gate.epoch
                made.append(
                    Event(
                        t,
                        seq,
                        source,
                        output.type,
                        output.place or place,
                        output.attributes,
                        epoch,
                        epoch,
                        ancestors,
                        shared,
                    )
                )
        if self._reused:
            made = self._reused.remember(selection, step, made)
        made = [event for event in made if event.t >= self._stamps.point]  # its stream begins there
        for event in made:
            self._said = event.key
            if self._repeats:
                out.extend(self._repeats.add(event))
            else:
                out.append(event)
        self.counts = self.counts._replace(outputs=self.counts.outputs + len(made))

    def _note_reach(self, selection: Selection) -> None:
        for window, selected in selection.windows.items():
            if selected:
                self._reach[window] = max(self._reach.get(window, 0.0), selection.end - selected[0].t)

    def _begin(self, marker: Marker, out: list[Message]) -> None:
        """Sends the marker on. If a source below is sent anew, begins anew with empty buffers."""
        anew = bool(self._sources & marker.touched)
        if self._repeats and self._reused and anew:
            out.extend(self._repeats.flush())
            self._repeats.begin(marker.t)
            self._reused.begin()
        out.append(marker)
        self.marker = marker
        self.gate.begin(marker, again=anew)
        self._said = BEGINNING
        if anew:
            self._reach = {}
            self._stamps = Stamps(self.operator, marker.points[self.operator.name])
            self._parts, self._to_begin = {}, {}
            if self.operator.partition is None:
                self._parts[None] = self._to_begin[None] = Part(self.operator, self._stamps.point)

    def _say_how_far(self, out: list[Message]) -> None:
        """Sends a heartbeat if it says more than the last message."""
        known_to = self.gate.known_to()
        if not known_to or self.gate.ended() is not None:
            return
        t = known_to[0]
        assert isinstance(t, float | int)
        for part in self._parts.values():
            shift = self.operator.restriction.shift
            if not part.begun:
                t = min(t, part.end_t - self.operator.restriction.length)
            elif isinstance(shift, ByTime):
                t = min(t, part.end_t + shift.seconds)
        if (t,) > self._said and t < math.inf:
            if self._repeats and not self._repeats.may_say(t):
                return
            if self._repeats:
                out.extend(self._repeats.flush())
            self._said = (t,)
            out.append(Heartbeat(t))
