"""What travels between servers, operators and the consumer, and the receiving end of one channel.

A channel is first in, first out, and its events are in order. Markers divide it into epochs. Producers that
leave out what the last epoch already brought (``suppression``) rely on the receiver, which keeps it: an
inlet puts it back in its place, so all that comes behind an inlet is complete.
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

from node_agent.apps.mcep.geometry import Point, Region, contains
from node_agent.apps.mcep.model import BEGINNING, END, Event, Mark, McepError, just_before


class Heartbeat(NamedTuple):
    """All events before ``t`` have been sent."""

    t: float


class Marker(NamedTuple):
    """The interest switches: what follows on this channel belongs to ``epoch``.

    ``region``: None if the query has ended. ``t``: start of the new epoch; the last one had only atomic
    events before it. ``points``: by producer, from which time on its stream is part of the epoch (Δi).
    ``touched``: the sources that are sent anew from there on; streams that depend on no such source go on
    as before (section 3.3.4).
    """

    t: float
    epoch: int
    region: Region | None
    points: Mapping[str, float]
    touched: frozenset[str]


class Log(NamedTuple):
    """The events of the last epoch from ``first`` to ``last`` belong to this one too, and are not sent
    again."""

    first: Mark
    last: Mark


Message = Event | Heartbeat | Marker | Log


class ChannelId(NamedTuple):
    """``origin``: the server, if several send the events of one source."""

    producer: str
    origin: str = ""


class Broken(McepError):
    """A channel brought what it must not bring: a fault of the sender or of what lies between."""


Omits = Literal["nothing", "region", "logs"]
"""What a producer leaves out in the history of a new epoch: nothing; what it sent in the last epoch and
lies in the new region; what it says by logs."""


class Inlet:
    """The receiving end of a channel.

    ``keep_s``: how long before its newest event the next epoch can begin, if it may need this epoch's
    events.
    """

    def __init__(
        self, sources: Iterable[str], omits: Omits = "nothing", keep_s: float | None = None, epoch: int = 0
    ) -> None:
        self.sources = frozenset(sources)
        self.epoch = epoch
        self.events: deque[Event] = deque()
        """Of this epoch, not yet released."""
        self.mark: Mark = BEGINNING
        """No later event of this epoch comes before it."""
        self.marker: Marker | None = None
        """The one that ends this epoch, once it has come."""
        self.filled = 0
        """Events that were put back."""
        self.dropped = 0
        """Events of an epoch that was over (best effort)."""
        self._late = False
        """Whether this epoch's marker has not come, although the epoch began."""
        self._omits, self._keep_s = omits, keep_s
        self._waiting: deque[Message] = deque()
        self._kept: list[Event] = []
        """Events of this epoch in order, for the next one."""
        self._old: list[Event] = []
        """Of the last epoch: those that can still be put back."""

    @property
    def waiting(self) -> int:
        """Messages that have not been released."""
        return len(self.events) + len(self._waiting)

    def receive(self, message: Message) -> None:
        if self._late:
            self._drop(message)
        elif self.marker is not None:
            self._waiting.append(message)
        else:
            self._admit(message)

    def promise(self, mark: Mark) -> None:
        """No later event of this epoch comes at ``mark`` or before it."""
        if self.marker is None and not self._late:
            self._put_back(mark)
            self.mark = max(self.mark, mark)

    def coming(self) -> Iterable[Marker]:
        """All markers that have arrived, the one of this epoch's end first."""
        if self.marker is not None:
            yield self.marker
            yield from (each for each in self._waiting if isinstance(each, Marker))

    def begin(self, marker: Marker, since: float, *, again: bool = True) -> None:
        """The next epoch begins, whose events of this stream are from ``since`` on.

        ``again``: if the stream is not sent anew, its events since then pass again as part of the new
        epoch.
        """
        self.epoch = marker.epoch
        self.mark, self.marker = BEGINNING, None
        self.events.clear()
        if not self.sources & marker.touched:
            first = bisect_left(self._kept, just_before(since), key=_key)
            if again:
                self.events.extend(each._replace(epoch=self.epoch) for each in self._kept[first:])
        else:
            if self._omits == "region":
                self._old = [e for e in self._kept if e.t >= since and _lies_in(marker.region, e)]
            elif self._omits == "logs":
                self._old = self._kept
            self._kept = []
        while self._waiting and self.marker is None:
            self._admit(self._waiting.popleft())

    def jump(self, marker: Marker) -> None:
        """The same without what is left of this epoch, whether it has arrived or not (best effort)."""
        while self.marker is not None and self.marker.epoch < marker.epoch:
            self.marker = None
            while self._waiting and self.marker is None:
                message = self._waiting.popleft()
                if isinstance(message, Marker):
                    self.marker = message
        if self.marker is not None:
            self.begin(marker, marker.t)
        else:
            self.epoch, self.mark, self._late = marker.epoch, BEGINNING, True
            self.events.clear()

    def _drop(self, message: Message) -> None:
        """Drops what comes before this epoch's marker."""
        if isinstance(message, Marker) and message.epoch >= self.epoch:
            self._late = False
            if message.epoch > self.epoch:
                self.mark, self.marker = END, message
        elif isinstance(message, Event):
            self.dropped += 1

    def _admit(self, message: Message) -> None:
        match message:
            case Event():
                if message.key <= self.mark:
                    raise Broken(f"event {message.key} came after {self.mark}")
                self._put_back(message.key)
                self._append(message)
                self.mark = message.key
            case Heartbeat(t):
                self._put_back(just_before(t))
                self.mark = max(self.mark, just_before(t))
            case Log(first, last):
                begin = bisect_left(self._old, first, key=_key)
                end = bisect_left(self._old, (*last, ""), key=_key)
                self._fill(self._old[begin:end])
                del self._old[:end]
                self.mark = max(self.mark, last)
            case Marker():
                if message.epoch <= self.epoch:
                    raise Broken(f"a marker of epoch {message.epoch} came in epoch {self.epoch}")
                self._put_back(END)
                self.mark, self.marker = END, message

    def _put_back(self, before: Mark) -> None:
        if self._omits == "region" and self._old:
            end = bisect_left(self._old, before, key=_key)
            self._fill(self._old[:end])
            del self._old[:end]

    def _fill(self, events: list[Event]) -> None:
        self.filled += len(events)
        for each in events:
            self._append(each)

    def _append(self, event: Event) -> None:
        if event.epoch != self.epoch:
            event = event._replace(epoch=self.epoch)
        self.events.append(event)
        if self._keep_s is not None:
            self._kept.append(event)
            if len(self._kept) > 64 and self._kept[len(self._kept) // 2].t < event.t - self._keep_s:
                del self._kept[: bisect_left(self._kept, just_before(event.t - self._keep_s), key=_key)]


def _key(event: Event) -> Mark:
    return event[:3]


def _lies_in(region: Region | None, event: Event) -> bool:
    """Producers of such streams look at one event at a time, so its place is that of an atomic event."""
    return region is not None and isinstance(event.place, Point) and contains(region, event.place)
