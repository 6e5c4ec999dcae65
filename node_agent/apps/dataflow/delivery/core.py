"""The delivery core: one replica's part in carrying streams to the sinks, as a state machine without I/O.

It rests on one kind of fact: "these positions of this stream are done", that is, all their results have
reached all sinks. A fact is true for every replica and stays true, so it may arrive late or twice. Facts
travel upstream as acknowledgements and downstream as floors. See docs/delivery.md.
"""

import sys
from collections.abc import Mapping, Sequence
from math import inf

from node_agent.apps.dataflow.delivery.ask_timer import AskTimer
from node_agent.apps.dataflow.delivery.effects import (
    Acknowledge,
    Ask,
    Drop,
    Effect,
    Forward,
    Process,
    ProcessUnit,
    PushBack,
    Ranges,
    Resume,
    Settle,
)
from node_agent.apps.dataflow.delivery.emission import Emission, Payloads
from node_agent.apps.dataflow.delivery.inbox import Inbox, stretches, take_owed
from node_agent.apps.dataflow.delivery.limits import EMPTY_PER_ITEM, MOST_RANGES, DeliveryLimits, Reliability
from node_agent.apps.dataflow.delivery.plan_neighbours import PlanNeighbours
from node_agent.apps.dataflow.delivery.positions import Range
from node_agent.apps.dataflow.delivery.retention import Retention
from node_agent.apps.dataflow.delivery.spill import Spill
from node_agent.apps.dataflow.model.tuples import StreamTuple
from node_agent.apps.dataflow.switching.route import Hop
from node_agent.apps.dataflow.windows.assembly import Assembler
from node_agent.apps.dataflow.windows.units import Unit

OVERRUN = 2
"""How many times the limit of an honest sender may be held here: other senders may have sent part of it
too.
"""


class DeliveryCore:
    """``assembler``: for an operator that processes several items at once; None if it takes them one by one.

    ``buffers``: the limits of those downstream operators that have limits of their own.
    """

    def __init__(
        self,
        neighbours: PlanNeighbours,
        level: Reliability,
        limits: DeliveryLimits,
        assembler: Assembler | None = None,
        spill: Spill | None = None,
        buffers: Mapping[str, DeliveryLimits] = {},
    ) -> None:
        self.neighbours = neighbours
        self._unacknowledged = limits.unacknowledged
        self._most_held = OVERRUN * EMPTY_PER_ITEM * max(each.items for each in (limits, *buffers.values()))
        self.most_bytes = OVERRUN * limits.bytes
        """A replica upstream that keeps its limits cannot have sent more of one stream."""
        self._forgets_done = level is Reliability.AT_LEAST_ONCE and neighbours.role == "sink"
        self._assembler = assembler
        self._retentions = {
            name: Retention(name, whole, buffers.get(name, limits), spill)
            for name, whole in neighbours.downstreams.items()
        }
        self._inboxes: dict[tuple[str, str], Inbox] = {}
        self._upstream_of: dict[str, Inbox] = {}
        self._full_inboxes: dict[Inbox, None] = {}
        self._units: dict[int, None] = {}
        self._output_floor = 0
        self._emission = Emission(neighbours.replica)
        self._blocked = False
        self._ask_timer = AskTimer(limits.unacknowledged, limits.longest_pause)
        self._effects: list[Effect] = []
        self._acks: dict[str, tuple[dict[str, list[Range]], dict[str, list[Range]]]] = {}

    # Called for what arrives from the network.

    def receive(
        self,
        sender: str,
        upstream: str,
        items: Sequence[StreamTuple],
        floors: Mapping[str, int],
        now: float,
    ) -> list[Effect]:
        """Takes a batch that replica ``sender`` of ``upstream`` sent, or that a sibling forwarded for it."""
        came = [(self._inbox(upstream, stretch[0].origin), stretch) for stretch in stretches(items)]
        for inbox, stretch in came:
            inbox.reach, inbox.came_at = max(inbox.reach, stretch[-1].tau), now
        self._learn(upstream, floors, now)
        self._ask_timer.start(now)
        for inbox, stretch in came:
            first, last = stretch[0].prev + 1, stretch[-1].tau
            inbox.came(sender, first, last)
            if self._assembler is not None:
                self._assemble(self._assembler, inbox, stretch, now)
                self._report_taken(inbox, first, last)
                self._release(self._assembler, now)
            else:
                self._take(inbox, stretch, first, last, now)
        return self._outcome(now)

    def overrun(self, sender: str, upstream: str) -> bool:
        """Whether ``sender`` has sent more than a replica can that keeps its limits."""
        for (name, origin), inbox in self._inboxes.items():
            if name != upstream:
                continue
            held = len(inbox.backlog) if self._assembler is None else self._assembler.held(upstream, origin)
            owed = inbox.owed.get(sender)
            if held > self._most_held or (owed is not None and len(owed) > MOST_RANGES):
                return True
        return False

    def acknowledged(
        self, replica: str, downstream: str, done: Ranges, taken: Ranges, now: float
    ) -> list[Effect]:
        """``replica`` of operator ``downstream`` reports what is done, and what it has taken."""
        retention = self._retentions[downstream]
        for origin, ranges in taken.items():
            for first, last in ranges:
                retention.taken(replica, origin, first, last)
        for origin, ranges in done.items():
            reach = retention.reach.get(origin, 0)  # what was never sent cannot be done
            for first, last in ranges:
                if first <= reach:
                    self._output_done(retention, origin, first, min(last, reach), now)
        if self._assembler is not None:
            self._release(self._assembler, now)
        return self._outcome(now)

    def connection_failed(self, downstream: str, replica: str, now: float) -> list[Effect]:
        """The connection broke, or the replica at its end restarted: what was sent to it may be lost."""
        self._retentions[downstream].failed(replica, now)
        return self._outcome(now)

    def asked(self, replica: str, downstream: str, now: float) -> list[Effect]:
        """``replica`` of ``downstream`` makes no progress and asks what is done."""
        retention = self._retentions[downstream]
        floors = {origin: done.floor for origin, done in retention.done.items() if done.floor}
        if floors:
            ends = [end for origin, end in retention.ends.items() if end.tau <= floors.get(origin, 0)]
            self._effects.append(Settle(downstream, replica, floors, ends))
        if self._ask_timer.is_off and self.neighbours.upstreams:
            self._ask(now)
        return self._outcome(now)

    def settled(
        self, upstream: str, floors: Mapping[str, int], ends: Sequence[StreamTuple], now: float
    ) -> list[Effect]:
        """A replica of ``upstream`` reports up to where everything is done, and which streams have ended.

        An end is not believed while items of that stream still arrive.
        """
        ends = [end for end in ends if self._may_have_ended(self._inbox(upstream, end.origin), end, now)]
        self._learn(upstream, floors, now)
        for end in ends:
            for retention in self._retentions.values():
                retention.ends.setdefault(end.origin, end)
            if self._assembler is not None:
                self._assemble(self._assembler, self._inbox(upstream, end.origin), [end], now)
                self._release(self._assembler, now)
        return self._outcome(now)

    # Called by the runtime.

    def emit(self, captured: Sequence[tuple[Payloads, int]], now: float) -> list[Effect]:
        """Takes a source's next items: their payloads, and when they were captured.

        If the source does not wait while the core is ``full``, its oldest unsent items are dropped and leave
        holes. If there is no room for holes either, new items are dropped, and their holes follow later.
        """
        self._catch_up()
        emission = self._emission
        fitting = captured[: self._room_for_holes()] if not emission.behind else ()
        items = [emission.next(payloads, born_ns) for payloads, born_ns in fitting]
        for retention in self._retentions.values() if items else ():
            full = retention.full(emission.origin)
            self._effects += retention.put_of_source(items) if full else retention.put(items)
        for payloads, born_ns in captured[len(fitting) :]:
            self._effects.append(Drop(None, emission.skip(payloads, born_ns), "source_buffer_full"))
        return self._outcome(now)

    def end(self, now: float) -> list[Effect]:
        """The source has nothing more to emit."""
        self._emission.end()
        return self._outcome(now)

    def processed_each(
        self, upstream: str, items: Sequence[StreamTuple], results: Sequence[Payloads], now: float
    ) -> list[Effect]:
        """The operator, or the sink, has processed items that ``Process`` gave it."""
        outputs = [item.with_payloads(made) for item, made in zip(items, results, strict=True)]
        for stretch in stretches(outputs):
            inbox = self._inboxes[upstream, stretch[0].origin]
            self._finish(inbox, stretch, stretch[0].prev + 1, stretch[-1].tau, now)
        return self._outcome(now)

    def processed(self, unit: Unit, payloads: Payloads, now: float) -> list[Effect]:
        """The operator has processed a unit that ``ProcessUnit`` gave it."""
        self._result(unit, payloads)
        if self._assembler is not None:
            self._release(self._assembler, now)
        return self._outcome(now)

    def steer(self, downstream: str, hop: Hop | None, now: float) -> list[Effect]:
        """Sends where ``hop`` says from now on; None: keeps everything until there is a route again."""
        self._retentions[downstream].steer(hop)
        return self._outcome(now)

    def hand_over(self, sibling: str) -> list[Effect]:
        """Forwards what incomplete units here hold to ``sibling``, which now gets the inputs. It stays here
        too.
        """
        if self._assembler is None:
            return []
        batches: dict[tuple[str, str], list[StreamTuple]] = {}
        for upstream, item in self._assembler.holding():
            owed = self._inboxes[upstream, item.origin].owed
            for sender, positions in owed.items():
                if item.tau in positions:
                    batches.setdefault((sender, upstream), []).append(item)
        return [Forward(sibling, sender, upstream, items) for (sender, upstream), items in batches.items()]

    def tick(self, now: float) -> list[Effect]:
        """Does what is due at ``now``: rewinds overdue items, spills, asks upstream."""
        for retention in self._retentions.values():
            retention.overdue(now)
            retention.spill_overflow()
        if now >= self._ask_timer.due_at:
            if self.holding:
                self._ask(now)
            else:
                self._ask_timer.stop()
        return self._outcome(now)

    def next_tick(self, now: float) -> float:
        """Returns when ``tick`` should be called; ``inf`` if nothing here depends on time."""
        at = min((r.resumes_at(now) for r in self._retentions.values()), default=inf)
        if self.retained:
            at = min(at, now + self._unacknowledged / 2)
        return min(at, self._ask_timer.due_at)

    @property
    def full(self) -> bool:
        return self._blocked

    @property
    def position(self) -> int:
        """The position of a source's newest item."""
        return self._emission.position

    @property
    def room(self) -> int:
        """How many items a source may emit at once, at least one."""
        return min((r.room(self.neighbours.replica) for r in self._retentions.values()), default=1)

    def knows(self, upstream: str, item: StreamTuple) -> bool:
        """Whether ``item`` arrived before, or need not arrive. Not for windows, which do their own
        bookkeeping.
        """
        inbox = self._inboxes.get((upstream, item.origin))
        return inbox is not None and (item.tau in inbox.held or item.tau in inbox.done)

    def floor(self, upstream: str, origin: str) -> int:
        """Returns up to where that stream is done."""
        inbox = self._inboxes.get((upstream, origin))
        return inbox.done.floor if inbox is not None else 0

    @property
    def holding(self) -> bool:
        """Whether something arrived that is not done."""
        if self._assembler is None:
            return any(len(inbox.held) for inbox in self._inboxes.values())
        return any(self._assembler.held(*key) for key in self._inboxes)

    @property
    def retained(self) -> int:
        """How many items are kept for downstream operators."""
        return sum(retention.positions for retention in self._retentions.values())

    @property
    def intervals(self) -> int:
        """How many ranges all sets of positions have: the memory that bookkeeping takes."""
        inputs = sum(
            len(positions)
            for inbox in self._inboxes.values()
            for positions in (
                inbox.held,
                inbox.working,
                inbox.done,
                *inbox.owed.values(),
                *inbox.untaken.values(),
            )
        )
        return inputs + sum(len(done) for r in self._retentions.values() for done in r.done.values())

    def waiting(self) -> dict[str, int]:
        """Returns by downstream operator how many items were not yet given to a connection."""
        return {name: retention.waiting for name, retention in self._retentions.items()}

    def kept(self) -> int:
        """Returns how many of a source's items are kept because they are not done yet."""
        return max((r.kept(self.neighbours.replica) for r in self._retentions.values()), default=0)

    def in_flight(self, downstream: str, replica: str) -> int:
        """Returns how many items ``replica`` of ``downstream`` was sent and has not taken yet."""
        return self._retentions[downstream].in_flight(replica)

    # Operators that take items one by one, and sinks.

    def _take(self, inbox: Inbox, stretch: list[StreamTuple], first: int, last: int, now: float) -> None:
        if self._forgets_done:
            inbox.done.discard(first, last)
        fresh = inbox.news(stretch)
        if len(fresh) < len(stretch):
            for begin, end in inbox.working.missing(first, last):
                self._report_taken(inbox, begin, end)
            for begin, end in inbox.done.common(first, last):
                self._report_done(inbox, begin, end)
        if not fresh:
            return
        work = [item for item in fresh if item.payloads]
        if work:
            if inbox.backlog or self._is_full(inbox.origin):
                inbox.backlog.update((item.tau, item) for item in work)
                self._full_inboxes[inbox] = None
            else:
                self._effects.append(Process(inbox.upstream, work))
        if len(work) < len(fresh):
            for hole in fresh:
                if not hole.payloads:
                    self._finish(inbox, [hole], hole.prev + 1, hole.tau, now)

    def _work_off(self, inbox: Inbox) -> None:
        """Processes the backlog if there is room, and in any case what is older than something kept."""
        origin, backlog = inbox.origin, inbox.backlog
        lasts = [retention.last(origin) for retention in self._retentions.values() if retention.full(origin)]
        before = min(lasts, default=sys.maxsize)
        ready = sorted(tau for tau in backlog if tau < before)
        if ready:
            self._effects.append(Process(inbox.upstream, [backlog.pop(tau) for tau in ready]))
        if not backlog:
            del self._full_inboxes[inbox]

    def _is_full(self, origin: str) -> bool:
        return any(retention.full(origin) for retention in self._retentions.values())

    def _finish(self, inbox: Inbox, outputs: list[StreamTuple], first: int, last: int, now: float) -> None:
        for retention in self._retentions.values():
            self._effects += retention.put(outputs)
        inbox.working.discard(first, last)
        self._report_taken(inbox, first, last)
        if not self._retentions:
            self._input_done(inbox, first, last, now)

    # Windows and joins.

    def _assemble(self, assembler: Assembler, inbox: Inbox, items: list[StreamTuple], now: float) -> None:
        for item in items:
            if item.tau not in inbox.done:
                inbox.before[item.tau] = item.prev
            for unit in assembler.add(inbox.upstream, item):
                if not unit.complete:
                    continue
                self._units[unit.tau] = None
                if self._retentions and self._known_done(unit):
                    self._unit_done(assembler, unit.tau)
                elif unit.last:
                    self._result(unit, ())
                else:
                    self._effects.append(ProcessUnit(unit))

    def _result(self, unit: Unit, payloads: Payloads) -> None:
        item = unit.result(payloads)
        for retention in self._retentions.values():
            self._effects += retention.put([item])
        if self._assembler is not None and self._known_done(unit):
            self._unit_done(self._assembler, unit.tau)

    def _known_done(self, unit: Unit) -> bool:
        return all(
            unit.tau in done if (done := retention.done.get(unit.origin)) is not None else False
            for retention in self._retentions.values()
        )

    def _unit_done(self, assembler: Assembler, tau: int) -> None:
        if tau in self._units:
            del self._units[tau]
            assembler.done(self.neighbours.operator, tau)

    def _release(self, assembler: Assembler, now: float) -> None:
        """Reports inputs that the assembler no longer needs, and outputs that it knows to be done."""
        for position in assembler.released():
            inbox = self._inbox(position.upstream, position.origin)
            before = inbox.before.pop(position.tau, None)
            first = position.tau if before is None else before + 1
            self._input_done(inbox, first, position.tau, now)
        floor = assembler.floor()
        if floor > self._output_floor:
            self._output_floor = floor
            for retention in self._retentions.values():
                retention.settle(self.neighbours.operator, 1, floor)
            for tau in [tau for tau in self._units if tau <= floor]:
                del self._units[tau]
        assembler.unused()  # taken out, or they would accumulate

    # What is done.

    def _learn(self, upstream: str, floors: Mapping[str, int], now: float) -> None:
        for origin, reported in floors.items():
            inbox = self._inbox(upstream, origin)
            floor = min(reported, inbox.reach)  # an idle replica cannot settle what is yet to come
            if floor <= inbox.done.floor:
                continue
            self._input_done(inbox, 1, floor, now)
            if self._assembler is not None:
                self._assembler.settled(upstream, origin, floor)
                self._release(self._assembler, now)

    def _may_have_ended(self, inbox: Inbox, end: StreamTuple, now: float) -> bool:
        if end.tau > inbox.reach and now - inbox.came_at < self._unacknowledged:
            return False
        inbox.reach = max(inbox.reach, end.tau)
        return True

    def _output_done(self, retention: Retention, origin: str, first: int, last: int, now: float) -> None:
        for part in retention.settle(origin, first, last):
            for begin, end in self._done_by_all(origin, *part):
                if self._assembler is not None:
                    for tau in [tau for tau in self._units if begin <= tau <= end]:
                        self._unit_done(self._assembler, tau)
                elif origin in self._upstream_of:
                    self._input_done(self._upstream_of[origin], begin, end, now)

    def _done_by_all(self, origin: str, first: int, last: int) -> list[Range]:
        """Returns the parts of ``first`` … ``last`` that are done at every downstream operator."""
        parts = [(first, last)]
        for retention in self._retentions.values():
            done = retention.done.get(origin)
            parts = [part for begin, end in parts for part in (done.common(begin, end) if done else ())]
        return parts

    def _input_done(self, inbox: Inbox, first: int, last: int, now: float) -> None:
        if not inbox.done.covers(first, last):
            self._ask_timer.restart(now)
            inbox.finish(first, last)
        if self._assembler is None:
            for retention in self._retentions.values():
                retention.settle(inbox.origin, first, last)
        self._report_done(inbox, first, last)

    def _report_done(self, inbox: Inbox, first: int, last: int) -> None:
        for sender, parts in take_owed(inbox.owed, first, last):
            ranges = self._acks.setdefault(sender, ({}, {}))[0].setdefault(inbox.origin, [])
            # Reports the whole interval: an earlier report about the rest may have been lost.
            ranges += dict.fromkeys(inbox.done.around(begin) for begin, _ in parts)

    def _report_taken(self, inbox: Inbox, first: int, last: int) -> None:
        for sender, parts in take_owed(inbox.untaken, first, last):
            self._acks.setdefault(sender, ({}, {}))[1].setdefault(inbox.origin, []).extend(parts)

    def _ask(self, now: float) -> None:
        replicas = dict.fromkeys(replica for group in self.neighbours.upstreams.values() for replica in group)
        self._effects += [Ask(replica) for replica in replicas]
        self._ask_timer.back_off(now)

    # Common parts.

    def _inbox(self, upstream: str, origin: str) -> Inbox:
        inbox = self._inboxes.get((upstream, origin))
        if inbox is None:
            inbox = self._inboxes[upstream, origin] = Inbox(upstream, origin)
            self._upstream_of[origin] = inbox
        return inbox

    def _catch_up(self) -> None:
        """Makes the holes of a source that there was no room for."""
        if self._emission.behind and (holes := self._emission.catch_up(self._room_for_holes())):
            for retention in self._retentions.values():
                self._effects += retention.put(holes)

    def _room_for_holes(self) -> int:
        rooms = (retention.room_for_holes(self.neighbours.replica) for retention in self._retentions.values())
        return max(0, min(rooms, default=0))

    def _outcome(self, now: float) -> list[Effect]:
        self._catch_up()
        for retention in self._retentions.values():
            self._effects += retention.send(now)
        for inbox in list(self._full_inboxes):
            self._work_off(inbox)
        blocked = any(r.full(origin) for r in self._retentions.values() for origin in r.streams)
        if blocked is not self._blocked:
            self._blocked = blocked
            self._effects.append(PushBack() if blocked else Resume())
        effects, self._effects = self._effects, []
        if self._acks:
            effects += [Acknowledge(replica, done, taken) for replica, (done, taken) in self._acks.items()]
            self._acks = {}
        return effects
