"""What one node does of the plans of a run, without input and output.

``apply`` takes entries: what occurred, what neighbours said, how far time went. They change the node's state
and nothing else does, so a node that is killed is built again from the entries it wrote down, or from a copy
of its state and the entries since. It then has the same messages waiting, with the same numbers: a neighbour
says how far it got, and the rest is sent again.

    machine = Machine(plan)
    machine.apply(Occurred(Instance(1.0, 1.0, "smoke", 0)))
    machine.waiting("bus")          # what to send when there is a contact
    machine.marks_for("bus", 2.0)   # what to say after that
"""

import math
from typing import NamedTuple

from msgspec import Struct, field

from node_agent.apps.comet.absences import Watch, WatchState
from node_agent.apps.comet.events import Detection, Instance, detection_of
from node_agent.apps.comet.junction import Junction, JunctionState
from node_agent.apps.comet.messages import (
    NOTHING,
    Acknowledged,
    Also,
    Ask,
    Bounds,
    Carry,
    Entry,
    Heard,
    Key,
    Mark,
    Marks,
    Message,
    Occurred,
    Opened,
    Passed,
    Received,
    Told,
    key_of,
)
from node_agent.apps.comet.node_plan import OTHER_MARKS_S, NodePlan, Stream
from node_agent.apps.comet.outbox import Dropped, Outbox
from node_agent.apps.comet.outlet import MOST_SENT, Match, Outlet, new_outlet


class Found(Struct, frozen=True):
    """A detection at this node's sink. ``number``: counts them."""

    number: int
    request: str
    detection: Detection


class Arrived(NamedTuple):
    """An instance came to a junction or a watch of a request."""

    request: str
    instance: Instance


class Asked(NamedTuple):
    """A junction of a request asked for instances."""

    request: str
    bounds: Bounds


class NodeState(Struct):
    """All that a node knows. ``taken``: the last number of each neighbour. ``cached``: what it sent, for
    further streams. ``unasked``: by stream, what ``Marks.down`` says."""

    now: float = -math.inf
    concluded: float = -math.inf
    """What waits for events of this node alone was decided so far."""
    opened: float | None = None
    occurred: dict[str, int] = field(default_factory=dict)
    """By event, how many instances of this node there were."""
    outboxes: dict[str, Outbox] = field(default_factory=dict)
    taken: dict[str, int] = field(default_factory=dict)
    cached: dict[str, dict[Key, Instance]] = field(default_factory=dict)
    marks: dict[int, Mark] = field(default_factory=dict)
    unasked: dict[int, float] = field(default_factory=dict)
    outlets: dict[int, Outlet] = field(default_factory=dict)
    junctions: dict[int, JunctionState] = field(default_factory=dict)
    watches: dict[int, WatchState] = field(default_factory=dict)
    detected: dict[str, dict[tuple[Key, ...], float]] = field(default_factory=dict)
    """By request, the constituents of what was found and its start: other alternatives may find it again."""
    found: int = 0
    untold: list[Found] = field(default_factory=list)


class Machine:
    """One node. ``state``: a copy to go on from; None: the node begins.

    ``dropped`` and ``observed`` are reports that the caller takes and clears.
    """

    def __init__(self, plan: NodePlan, state: NodeState | None = None) -> None:
        self.plan = plan
        self.state = state or NodeState()
        self.dropped: list[Dropped] = []
        self.observed: list[Arrived | Asked] = []
        self.streams = {stream.number: stream for stream in plan.streams}
        self._requests = {task.number: task.request for task in plan.tasks}
        self._junctions: dict[int, Junction] = {}
        self._watches: dict[int, Watch] = {}
        self._origins: dict[int, Junction] = {}
        """Of streams that a junction of this node sends."""
        patterns = {task.number: task.pattern for task in plan.tasks}
        for asked in plan.junctions:
            kept = self.state.junctions.setdefault(asked.task, JunctionState())
            junction = Junction(asked, patterns[asked.task], self.streams, kept)
            self._junctions[asked.task] = junction
            if asked.out is not None:
                self._origins[asked.out] = junction
            if asked.absent:
                watched = tuple(self.streams[each] for each in asked.absent)
                watch = self.state.watches.setdefault(asked.task, WatchState())
                self._watches[asked.task] = Watch(junction.conjunct, watched, watch)
        self._own: dict[str, list[Stream]] = {}
        for stream in plan.streams:
            if stream.origin == plan.node:
                self.state.outlets.setdefault(stream.number, new_outlet(stream.events, stream.pulled))
                if stream.number not in self._origins:
                    self._own.setdefault(stream.events[0], []).append(stream)
        for neighbour in plan.neighbours:
            self.state.outboxes.setdefault(neighbour, Outbox())
            self.state.cached.setdefault(neighbour, {})
            self.state.taken.setdefault(neighbour, 0)
        self._leaving: dict[str, dict[tuple[Key, bool], tuple[Instance, list[int]]]] = {}

    def apply(self, entry: Entry) -> None:
        """Changes the state. What neighbours said must have been checked (``claims``)."""
        match entry:
            case Opened(now):
                if self.state.opened is None:
                    self.state.opened = now
            case Occurred(instance):
                self.state.now = max(self.state.now, instance.end)
                self.state.occurred[instance.event] = instance.number + 1
                for stream in self._own.get(instance.event, ()):
                    self._offer(stream.number, (instance,))
            case Received(now, neighbour, number, message):
                self.state.now = max(self.state.now, now)
                if number > self.state.taken[neighbour]:
                    self.state.taken[neighbour] = number
                    self._take(neighbour, message)
            case Heard(now, _, marks):
                self.state.now = max(self.state.now, now)
                for number, mark in marks.up.items():
                    self.state.marks[number] = self.state.marks.get(number, NOTHING).joined(mark)
                for number, moment in marks.down.items():
                    self.state.unasked[number] = max(self.state.unasked.get(number, -math.inf), moment)
                self._conclude()
            case Acknowledged(_, neighbour, number):
                self.state.outboxes[neighbour].acknowledge(number, self.plan.limits)
            case Passed(now):
                self.state.now = max(self.state.now, now)
                self._conclude()
            case Told(_, detections):
                self.state.untold = [each for each in self.state.untold if each.number > detections]
        self._send_off()

    # What waits for neighbours.

    def waiting(self, neighbour: str) -> list[tuple[int, Message]]:
        """With their numbers; what is not acknowledged stays."""
        return self.state.outboxes[neighbour].waiting

    def marks_for(self, neighbour: str, now: float) -> Marks:
        """What may be said once everything that waits has been sent."""
        node = self.plan.node
        up, down = {}, {}
        for stream in self.plan.streams:
            if stream.after(node) == neighbour:
                mark = self._up_mark(stream, now)
                stalled = self.state.outboxes[neighbour].stalled.get(stream.number)
                if stalled is not None:
                    mark = Mark(min(mark.time, stalled), mark.asks, min(mark.seen, stalled))
                if mark.time > -math.inf or mark.asks:
                    up[stream.number] = mark
            if stream.pulled and stream.before(node) == neighbour:
                moment = self._unasked(stream)
                if moment > -math.inf:
                    down[stream.number] = moment
        return Marks(up, down)

    def next_conclusion(self) -> float | None:
        """When a match that waits for events of this node alone can be decided."""
        local = {stream.number for stream in self.plan.streams if len(stream.path) == 1}
        ends = [
            need.high
            for watch in self.state.watches.values()
            for candidate in watch.candidates
            for stream, need in candidate.needs.items()
            if stream in local and need.high >= self.state.concluded
        ]
        return min(ends, default=None)

    # What happens to instances and requests.

    def _take(self, neighbour: str, message: Message) -> None:
        match message:
            case Carry(instance, streams, hollow):
                if not hollow:
                    self._remember(self.state.cached[neighbour], instance)
                for number in streams:
                    self._pass_on(self.streams[number], instance, hollow)
            case Also(event, number, streams):
                known = self.state.cached[neighbour].get((event, number))
                if known is None:
                    self.dropped.append(Dropped("instance", neighbour, event, number))
                for each in streams:
                    if known is None:
                        self._doubt(self.streams[each])
                    else:
                        self._pass_on(self.streams[each], known, False)
            case Ask(stream, number, bounds):
                self._ask(self.streams[stream], number, bounds)

    def _doubt(self, stream: Stream) -> None:
        """An instance of a stream is not known here any more: an absence of its event is not certain now."""
        if not stream.absent:
            return
        neighbour = stream.after(self.plan.node)
        if neighbour is not None:
            self.state.outboxes[neighbour].stalled[stream.number] = -math.inf
            return
        watch = self.state.watches[stream.task]
        watch.dropped = max(watch.dropped, self.state.now)

    def _remember(self, cached: dict[Key, Instance], instance: Instance) -> None:
        """The neighbour refers to the last ``kept`` instances that it sent, at most."""
        cached.pop(key_of(instance), None)
        cached[key_of(instance)] = instance
        if len(cached) > 2 * self.plan.limits.kept:
            del cached[next(iter(cached))]

    def _offer(self, number: int, match: Match) -> None:
        """A match that stream ``number`` is about was found here."""
        outlet, stream = self.state.outlets[number], self.streams[number]
        for instance in outlet.offer(match):
            self._pass_on(stream, instance, False)
        while len(outlet.sent) > max(MOST_SENT, self.plan.limits.kept):
            del outlet.sent[next(iter(outlet.sent))]
        while len(outlet.matches) > self.plan.limits.kept:
            for each in outlet.drop_oldest():
                self.dropped.append(Dropped("kept", self._requests[stream.task], *key_of(each)))

    def _pass_on(self, stream: Stream, instance: Instance, hollow: bool) -> None:
        neighbour = stream.after(self.plan.node)
        if neighbour is None:
            self._arrive(stream, instance, hollow)
            return
        leaving = self._leaving.setdefault(neighbour, {})
        leaving.setdefault((key_of(instance), hollow), (instance, []))[1].append(stream.number)

    def _send_off(self) -> None:
        """An instance that several streams take over one link is one message."""
        for neighbour, leaving in self._leaving.items():
            outbox = self.state.outboxes[neighbour]
            for (_, hollow), (instance, streams) in leaving.items():
                outbox.carry(instance, tuple(streams), hollow, self.plan.limits)
        self._leaving.clear()
        for neighbour, outbox in self.state.outboxes.items():
            if outbox.size > self.plan.limits.waiting:
                self.dropped += outbox.shrink(neighbour, self.streams, self.plan.limits)

    def _arrive(self, stream: Stream, instance: Instance, hollow: bool) -> None:
        self.observed.append(Arrived(self._requests[stream.task], instance))
        if stream.absent:
            watch = self._watches[stream.task]
            watch.state.seen.add(instance)
            for each in watch.shrink(self.plan.limits.kept):
                self.dropped.append(Dropped("kept", self._requests[stream.task], *key_of(each)))
            return
        if hollow:
            return
        junction = self._junctions[stream.task]
        requests, matches = junction.arrive(instance)
        for number, bounds in requests:
            self.observed.append(Asked(self._requests[stream.task], bounds))
            self._ask(self.streams[number], 0, bounds)
        for match in matches:
            if junction.plan.out is not None:
                self._offer(junction.plan.out, match)
            elif stream.task in self._watches:
                watch = self._watches[stream.task]
                if len(watch.state.candidates) >= self.plan.limits.kept:
                    self.dropped.append(Dropped("kept", self._requests[stream.task], *key_of(match[0])))
                    continue
                for number, asked in watch.take(match):
                    watched = self.streams[number]
                    wanted = {watched.events[0]: (asked.low, asked.high)}
                    self.observed.append(Asked(self._requests[stream.task], wanted))
                    self._ask(watched, asked.ask, wanted)
            else:
                self._detect(stream.task, match)
        while len(junction.state.known) > self.plan.limits.kept:
            oldest = junction.state.known.drop_oldest()
            self.dropped.append(Dropped("kept", self._requests[stream.task], *key_of(oldest)))
        if stream.task in self._watches:
            self._decide(stream.task)

    def _ask(self, stream: Stream, number: int, bounds: Bounds) -> None:
        neighbour = stream.before(self.plan.node)
        if neighbour is not None:
            self.state.outboxes[neighbour].put(Ask(stream.number, number, bounds), self.plan.limits)
            return
        outlet = self.state.outlets[stream.number]
        if len(outlet.asked.asked) >= self.plan.limits.kept:
            # It does not count as answered, so nothing is taken for absent because of it.
            self.dropped.append(Dropped("request", self._requests[stream.task], min(bounds), number))
            return
        for instance in outlet.ask(number, bounds):
            self._pass_on(stream, instance, False)

    def _detect(self, task: int, match: Match) -> None:
        request = self._requests[task]
        detection = detection_of(frozenset(match))
        if sum(other == request for other in self._requests.values()) > 1:
            known = self.state.detected.setdefault(request, {})
            keys = tuple(map(key_of, detection.constituents))
            if keys in known:
                return
            known[keys] = detection.start
        self.state.found += 1
        self.state.untold.append(Found(self.state.found, request, detection))

    # What is complete, and what may be forgotten.

    def _complete(self, number: int) -> float:
        """Until when a stream that ends here has brought everything."""
        if len(self.streams[number].path) == 1:
            return self.state.now
        return self.state.marks.get(number, NOTHING).time

    def _up_mark(self, stream: Stream, now: float) -> Mark:
        if stream.origin != self.plan.node:
            return self.state.marks.get(stream.number, NOTHING)
        junction = self._origins.get(stream.number)
        own = now
        if junction is not None:
            # An instance may be sent long after it came here: when a match of it is complete.
            own = junction.after_step(len(junction.plan.steps) - 1, self._complete) - junction.longest
        if not stream.pulled:
            return Mark(own)
        asks = self.state.outlets[stream.number].asks
        return Mark(min(own, self.state.unasked.get(stream.number, -math.inf)), asks, own)

    def _unasked(self, stream: Stream) -> float:
        """Nothing that starts earlier will be asked of a pulled stream."""
        if stream.end != self.plan.node:
            return self.state.unasked.get(stream.number, -math.inf)
        junction = self._junctions[stream.task]
        if stream.absent:
            last = junction.after_step(len(junction.plan.steps) - 1, self._complete)
            return last - self._watches[stream.task].reach
        return junction.unasked(stream.number, self._complete)

    def _decide(self, task: int) -> None:
        watch = self._watches[task]
        marks = {
            stream.number: Mark(self.state.now)
            if len(stream.path) == 1
            else self.state.marks.get(stream.number, NOTHING)
            for stream in watch.streams
        }
        for match in watch.decided(marks):
            self._detect(task, match)

    def _conclude(self) -> None:
        """Decides what waited for marks, and removes what is not needed any more."""
        self.state.concluded = self.state.now
        for task, junction in self._junctions.items():
            junction.forget(self._complete)
            if task in self._watches:
                self._decide(task)
                self._watches[task].forget(junction.state.complete)
        for number, outlet in self.state.outlets.items():
            unasked = self.state.unasked.get(number, -math.inf)
            origin = self._origins.get(number)
            if origin is None:
                # Requests are kept until the neighbour surely heard that they are answered.
                outlet.forget(self.state.now - 2 * OTHER_MARKS_S, unasked, self.state.now)
            else:
                done = origin.state.complete
                outlet.forget(done, unasked, done - origin.longest)
        node = self.plan.node
        for neighbour in self.plan.neighbours:
            going = [s for s in self.plan.streams if s.after(node) == neighbour]
            sent = min((self._up_mark(stream, self.state.now).time for stream in going), default=math.inf)
            self.state.outboxes[neighbour].forget(sent)
            coming = [s.number for s in self.plan.streams if s.before(node) == neighbour]
            heard = min((self.state.marks.get(s, NOTHING).time for s in coming), default=math.inf)
            cached = self.state.cached[neighbour]
            self.state.cached[neighbour] = {k: each for k, each in cached.items() if each.end >= heard}
        for request, known in self.state.detected.items():
            bound = math.inf
            for task, junction in self._junctions.items():
                if self._requests[task] == request and junction.plan.out is None:
                    bound = min(bound, junction.state.complete - junction.longest)
                    if task in self._watches:
                        bound = min(bound, self._watches[task].earliest())
            self.state.detected[request] = {keys: start for keys, start in known.items() if start >= bound}
