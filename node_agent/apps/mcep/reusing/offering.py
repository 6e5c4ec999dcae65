"""Runs an operator whose selections a manager decides about: it selects, and the manager correlates.

What it sends stays in order: what comes after a selection waits until that one's results are there. Results
of other operators' selections get times and numbers as its own would have.

    operator = Offering("q1/mean", graph, "mean", inlets, offer, period=1.0)
    operator.receive(ChannelId("speed"), event)     # calls ``offer`` about once in a period
    operator.covered(0, results)
"""

import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from node_agent.apps.mcep.channel import ChannelId, Heartbeat, Inlet, Marker, Message
from node_agent.apps.mcep.execution import Execution, Sent, Stamps
from node_agent.apps.mcep.geometry import Region
from node_agent.apps.mcep.graph import OperatorGraph, fan_out
from node_agent.apps.mcep.model import Event, EventId, Shared
from node_agent.apps.mcep.reuse.lineage import output_of
from node_agent.apps.mcep.reuse.offers import Offer, Offered
from node_agent.apps.mcep.reuse.results import Input
from node_agent.apps.mcep.windows import Selection, Step

MOST_ITEMS = 2_000
"""Events and their ancestors in one message; more begin another one."""


@dataclass(slots=True)
class _Waiting:
    """A selection, and its results once they are there."""

    selection: Selection
    part: object
    initial: bool
    stamps: Stamps
    results: Sequence[Input] | None = None


class Offering(Execution):
    """``key``: its name among the operators of all queries. ``offer``: sends to its manager."""

    def __init__(
        self,
        key: str,
        graph: OperatorGraph,
        name: str,
        inlets: Mapping[ChannelId, Inlet],
        offer: Callable[[Offered], None],
        *,
        period: float,
        strict: bool = True,
    ) -> None:
        super().__init__(graph, name, inlets, strict=strict)
        self._key, self._offer, self._period = key, offer, period
        self._query = key.rpartition("/")[0]
        self._queue: deque[_Waiting | Message] = deque()
        """What is to be sent, in order."""
        self._selections: dict[int, _Waiting] = {}
        """Those without results."""
        self._number = 0
        self._events = _Numbered()
        self._batch: list[Offer] = []
        self._upto = self._told = -math.inf

    @property
    def ended(self) -> bool:
        return super().ended and not self._queue

    @property
    def selected(self) -> int:
        """How many selections it has made."""
        return self._number

    @property
    def waiting(self) -> int:
        """Also selections and messages that wait for results."""
        return super().waiting + len(self._queue)

    def covered(self, number: int, results: Sequence[Input]) -> None:
        """A selection has these results."""
        waiting = self._selections.pop(number, None)
        if waiting is not None:
            waiting.results = results

    def reached(self, number: int) -> list[Sent]:
        """All selections before this one are decided; those of which nothing came gave nothing."""
        while self._selections and (first := next(iter(self._selections))) < number:
            self._selections.pop(first).results = ()
        return fan_out(self._streams, self._ready())

    def go_on(self) -> list[Message]:
        self._enqueue(super().go_on())
        return self._ready()

    def _enqueue(self, out: list[Message]) -> None:
        for each in out:
            if isinstance(each, Heartbeat) and self._queue and isinstance(self._queue[-1], Heartbeat):
                self._queue.pop()
            self._queue.append(each)
        out.clear()

    def _ready(self) -> list[Message]:
        out: list[Message] = []
        while self._queue:
            first = self._queue[0]
            if not isinstance(first, _Waiting):
                out.append(first)
            elif first.results is None:
                break
            else:
                out += self._stamped(first, first.results)
            self._queue.popleft()
        return out

    def _stamped(self, of: _Waiting, results: Sequence[Input]) -> list[Event]:
        made = []
        for number, each in enumerate(results):
            t, seq, source = of.stamps.stamp(of.selection, of.part, number, initial=of.initial)
            epoch = of.selection.epoch
            event = output_of(each)._replace(t=t, seq=seq, source=source, epoch=epoch, born=epoch)
            if t >= of.stamps.point:
                made.append(event)
        self.counts = self.counts._replace(outputs=self.counts.outputs + len(made))
        return made

    def _correlate(self, selection: Selection) -> Step:
        return Step()

    def _emit(
        self, part: object, selection: Selection, step: Step, initial: bool, out: list[Message]
    ) -> None:
        self._note_reach(selection)
        self._enqueue(out)
        waiting = _Waiting(selection, part, initial, self._stamps)
        self._queue.append(waiting)
        self._selections[self._number] = waiting
        self._number += 1
        numbered = tuple(
            (window, tuple(self._events.number(self._named(each)) for each in events))
            for window, events in selection.windows.items()
        )
        self._batch.append(Offer(selection.end, numbered))
        self._events.forget(selection.end - self.operator.restriction.length)
        if self._events.size >= MOST_ITEMS:
            self._tell()

    def _named(self, event: Event) -> Event:
        """Two queries can have different results with the same id: here they get different origins."""
        if event.provenance == {(event.source, event.seq)} or (event.shared and event.shared.origin[0]):
            return event
        origin: EventId = (f"{self._query}/{event.source}", *event.id[1:])
        return event._replace(shared=(event.shared or Shared())._replace(origin=origin))

    def _begin(self, marker: Marker, out: list[Message]) -> None:
        if self.marker is not None:
            self._tell()
        super()._begin(marker, out)
        self._events.forget(math.inf)
        self._upto = max(self._upto, marker.t) if marker.region is not None else math.inf
        self._tell()

    def _say_how_far(self, out: list[Message]) -> None:
        super()._say_how_far(out)
        if not out or not isinstance(out[-1], Heartbeat) or self._upto == math.inf:
            return
        self._upto = max(self._upto, out[-1].t)
        if self._upto // self._period > self._told // self._period:
            self._tell()

    def _tell(self) -> None:
        marker = self.marker
        assert marker is not None, "nothing is selected before the first marker"
        region: Region | None = marker.region
        fresh, batch = self._events.fresh(), tuple(self._batch)
        self._batch.clear()
        self._told = self._upto
        self._offer(
            Offered(self._key, marker.epoch, marker.t, region, fresh, batch, self._events.oldest, self._upto)
        )


class _Numbered:
    """The events of an operator's selections, by number. ``oldest``: the lowest that is still known.
    ``size``: of those that were not told yet, with their ancestors."""

    def __init__(self) -> None:
        self.size = 0
        self._numbers: dict[EventId, int] = {}
        self._known: deque[tuple[int, Event]] = deque()
        self._fresh: list[Event] = []
        self._next = 0

    @property
    def oldest(self) -> int:
        return self._known[0][0] if self._known else self._next

    def number(self, event: Event) -> int:
        found = self._numbers.get(event.id)
        if found is None:
            found = self._numbers[event.id] = self._next
            self._known.append((found, event))
            self._fresh.append(event)
            self.size += 1 + len(event.provenance)
            self._next += 1
        return found

    def forget(self, before: float) -> None:
        """No later selection has events before this time."""
        while self._known and self._known[0][1].t < before:
            del self._numbers[self._known.popleft()[1].id]

    def fresh(self) -> tuple[Event, ...]:
        found = tuple(self._fresh)
        self._fresh.clear()
        self.size = 0
        return found
