"""Simulates the 802.11b distributed coordination function (DCF) on a shared channel, in model time.

``contention`` decides which node sends next, ``exchanges`` what happens then; this module drives both.

The medium pulls frames: it holds at most one frame of each node, and asks for the next when that is done. So
a queue can be a ``deque`` or the ring of a TAP device.
"""

import random
from collections.abc import Callable
from heapq import heappop, heappush

from orchestrator.radio.channel import Channel
from orchestrator.radio.contention import NEVER
from orchestrator.radio.exchanges import END, RESPOND, Deliver, Exchanges, GiveUp, Pull
from orchestrator.radio.settings import Mac


class Dcf(Exchanges):
    """Calls ``pull(node)`` to get a node's next frame, and reports by ``deliver(receiver, sender, frame)``
    and ``give_up(sender, frame)``. These run at ``now_ns`` and may call ``offer`` at once, and ``pause``.
    """

    __slots__ = ("_paused", "_until_ns", "now_ns")

    def __init__(
        self, channel: Channel, mac: Mac, rng: random.Random, pull: Pull, deliver: Deliver, give_up: GiveUp
    ) -> None:
        super().__init__(channel, mac, rng, pull, deliver, give_up)
        self.now_ns = 0
        self._paused, self._until_ns = False, 0

    def offer(self, node: int, now_ns: int) -> None:
        """Tells that ``node`` has something to send. It is pulled at once unless the node is busy with a
        frame.
        """
        station = self.stations[node]
        if station.head is not None:
            return
        self.now_ns = now_ns
        station.head = self._pull(node)
        if station.head is None or (self._counting | self._frozen) & station.bit:
            return
        busy, ready = self._history(station, now_ns)
        station.ready = ready if ready > now_ns else now_ns
        station.backoff = int(self._random() * (station.window + 1)) if busy else 0
        self._contend(station)

    def run_until(self, until_ns: int) -> None:
        """Handles all events up to and including ``until_ns``."""
        self.run_events(until_ns)
        self.now_ns = until_ns

    def pause(self) -> bool:
        """Lets ``run_events`` ask how long it may go on after the events of this moment, or else return then.
        Returns False if that was asked for.
        """
        if self._paused:
            return False
        self._paused, self._until_ns = True, self.now_ns
        return True

    def run_events(self, until_ns: int, after_pause: Callable[[], int] | None = None) -> int:
        """Does the same, but time stops at the last event. Returns what ``next_event_ns`` would.

        ``after_pause`` returns until when to go on after a pause.
        """
        events, stations, access_at = self._events, self.stations, self._access_at
        self._paused, self._until_ns = False, until_ns
        while True:
            access = self._next_access
            now = events[0][0] if events else NEVER
            first = access if access < now else now
            if first > self._until_ns:
                if not self._paused or after_pause is None or first == NEVER:
                    return first
                self._paused, self._until_ns = False, after_pause()
                if first > self._until_ns:
                    return first
            if access < now:
                self.now_ns = access
                station = stations[access_at.index(access)]
                if self._on_access(access, station):
                    end = station.end
                    if end > self._next_access or end > self._until_ns or (events and events[0][0] <= end):
                        heappush(events, (end, END, station.index))
                    else:  # no event comes between, so its end need not be queued
                        self.now_ns = end
                        self._on_end(end, station)
            else:
                self.now_ns = now
                _, kind, node = heappop(events)
                if kind == END:
                    self._on_end(now, stations[node])
                elif kind == RESPOND:
                    self._on_respond(now, stations[node])
                else:
                    self._on_timeout(now, stations[node])

    def next_event_ns(self) -> int:
        """Returns the time of the next event if nothing is offered before; NEVER if there is none."""
        events = self._events
        return min(events[0][0], self._next_access) if events else self._next_access

    def next_delivery_ns(self) -> int:
        """Returns a time before which nothing is delivered unless something is offered; NEVER if nothing
        waits.

        For a driver whose wake-ups are expensive: it must see transmissions end, not start.
        """
        earliest = self._events[0][0] if self._events else NEVER
        if self._next_access + self.air.shortest >= earliest:
            return earliest
        access_at, stations, air = self._access_at, self.stations, self.air
        nodes = self._counting
        while nodes:
            bit = nodes & -nodes
            nodes ^= bit
            node = bit.bit_length() - 1
            head = stations[node].head
            if head is not None:
                size = head.size
                if head.destination < 0:
                    end = access_at[node] + air.broadcast[size]
                elif size < self._rts_from:
                    end = access_at[node] + self._unicast_ns[size]
                else:
                    end = access_at[node] + air.rts
                if end < earliest:
                    earliest = end
        return earliest
