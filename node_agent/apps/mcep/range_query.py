"""Streams the atomic events of one source that lie in the processing interest (thesis, Alg. 3.3 on a
server).

A server keeps what its sensors send in its storage. ``progress`` says up to which time all has arrived;
what is in the region up to there is sent in order, the last seconds of history first. A switch ends the
epoch at its start time: a marker follows the last event before it, and the new region's history follows the
marker. History and live events come from the storage by their times alone, so nothing is lost or sent twice
between them.
"""

import math
from collections import deque
from dataclasses import dataclass

from node_agent.apps.mcep.channel import Heartbeat, Marker, Message
from node_agent.apps.mcep.geometry import Point, Region, contains
from node_agent.apps.mcep.graph import Source
from node_agent.apps.mcep.model import FAR_S, Event, McepError
from node_agent.apps.mcep.storage import Storage


@dataclass(frozen=True, slots=True)
class Covered:
    """What a stream has sent since its last marker: all events in a region in a span of time."""

    region: Region
    since: float
    before: float = math.inf


class RangeQuery:
    """One source of one query on one server. ``look_back``: how long before its start an epoch can begin.
    ``suppression``: whether receivers keep what was sent."""

    def __init__(
        self,
        source: Source,
        storage: Storage,
        look_back: float,
        *,
        strict: bool = True,
        suppression: bool = False,
    ) -> None:
        self.source = source
        self.skipped = 0
        """Events that were not sent again."""
        self._storage, self._look_back = storage, look_back
        self._strict, self._suppression = strict, suppression
        self._arrived = -math.inf
        self._marker: Marker | None = None
        self._next: deque[Marker] = deque()
        self._sent_to = -math.inf
        """All events of this epoch before this time have been sent."""
        self._said = -math.inf
        self._held = False
        self._covered: list[Covered] = []
        self._before: list[Covered] = []
        """The same of the epoch before, if what it covered need not be sent again."""

    def hold(self) -> float:
        """Sends nothing from now on, until ``switch``. Returns the earliest start that the next epoch can
        have."""
        self._held = True
        if self._marker is None and not self._next:
            # The storage may have forgotten what an earlier start would need. Once all are gone, any time is
            # late enough.
            self._sent_to = min(self._arrived, FAR_S)
        return self._next[-1].t if self._next else self._sent_to

    def switch(self, marker: Marker) -> list[Message]:
        """The interest switches at ``marker.t``. Returns what to send."""
        if self._strict and marker.t < (self._next[-1].t if self._next else self._sent_to):
            raise McepError(f"the switch at {marker.t} is before what was sent; hold the range query first")
        self._held = False
        self._next.append(marker)
        out: list[Message] = []
        self._advance(out)
        return out

    def progress(self, arrived: float) -> list[Message]:
        """All events before this time are in the storage. Returns what to send."""
        self._arrived = max(self._arrived, arrived)
        out: list[Message] = []
        if not self._held:
            self._advance(out)
        return out

    def needed_since(self) -> float:
        """The storage must keep events from this time on, however late this query is."""
        waits = self._held or self._next
        if not waits and (self._marker is None or self._marker.region is None):
            return math.inf  # not begun, or ended
        coming = [marker.points[self.source.name] for marker in self._next]
        return min([self._sent_to - self._look_back, *coming])

    @property
    def ended(self) -> bool:
        """Whether the query has ended and all of it was sent."""
        return self._marker is not None and self._marker.region is None and not self._next

    def _advance(self, out: list[Message]) -> None:
        while self._next and (self._marker is None or not self._strict or self._arrived >= self._next[0].t):
            marker = self._next.popleft()
            if self._marker is not None and self._strict:
                self._send(marker.t, out)
            self._begin(marker, out)
        upto = min([self._arrived, *(each.t for each in self._next)])
        if self._marker is not None and upto < math.inf:  # once all are gone, the end is still to come
            self._send(upto, out)

    def _begin(self, marker: Marker, out: list[Message]) -> None:
        out.append(marker)
        covered = [Covered(each.region, each.since, min(each.before, marker.t)) for each in self._covered]
        if self.source.name in marker.touched:
            self._before = covered if self._suppression else []
            self._sent_to = marker.points[self.source.name]
            covered, since = [], self._sent_to
        else:
            since = marker.t
        self._covered = [*covered, Covered(marker.region, since)] if marker.region else covered
        self._said = self._sent_to
        self._marker = marker

    def _send(self, before: float, out: list[Message]) -> None:
        """Sends the events of this epoch up to a time."""
        if before <= self._sent_to:
            return
        if self._marker is None or self._marker.region is None:
            return  # the query has ended
        epoch = self._marker.epoch
        for event in self._storage.find(self.source.type, [self._marker.region], self._sent_to, before):
            if self._before and _is_covered(self._before, event):
                self.skipped += 1
            else:
                out.append(event._replace(epoch=epoch))
        self._sent_to = before
        if before > self._said:
            self._said = before
            out.append(Heartbeat(before))


def _is_covered(spans: list[Covered], event: Event) -> bool:
    place = event.place
    return isinstance(place, Point) and any(
        each.since <= event.t < each.before and contains(each.region, place) for each in spans
    )
