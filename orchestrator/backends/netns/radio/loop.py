"""The real-time loop: passes frames from TAP devices through the modelled medium, gated by the clock.

The medium runs in model time. The wall clock only says how far it may run, so an event that is carried out
late does not shift later ones. Only the first frame of each node is read; the rest wait in the kernel's ring,
which is the MAC's queue and drops what does not fit.
"""

import os
import select
import time
from collections.abc import Callable, Sequence

from orchestrator.backends.netns.radio import shared
from orchestrator.backends.netns.radio.driven import Driven
from orchestrator.backends.netns.radio.lateness import EARLY_NS, Tally
from orchestrator.backends.netns.radio.shared import Shared
from orchestrator.radio.contention import NEVER
from orchestrator.radio.exchanges import Deliver, Pull
from orchestrator.radio.station import EVERYONE, Outgoing

TICK_NS = 100_000_000
"""How often nodes move."""

_PUBLISH_TICKS = 10
_PUBLISH_OFTEN_TICKS = 2
# Sleeping, waking up and cold caches cost as much processor time: shorter waits are spent polling.
_SPIN_NS = 50_000
# A loop that is late checks for new frames at least this often, in model time.
_STEP_NS = 10_000_000
_RETRY_NS = 1_000_000
_LARGEST_READ = 2048
_ARMED = select.EPOLLIN | select.EPOLLONESHOT


class AirLoop:
    """``descriptors`` and ``addresses`` by node; model time 0 is ``origin_ns`` on ``clock``."""

    def __init__(
        self,
        make_medium: Callable[[Pull, Deliver], Driven],
        descriptors: Sequence[int],
        addresses: Sequence[bytes],
        memory: Shared,
        origin_ns: int,
        first_tick: int = 0,
        clock: Callable[[], int] = time.monotonic_ns,
        station_tables: bool = False,
    ) -> None:
        """``station_tables``: nodes want to know about their links, soon."""
        self._memory = memory
        self._origin = origin_ns
        self._clock = clock
        self._ticks = first_tick
        self._station_tables = station_tables
        self._publish_ticks = _PUBLISH_OFTEN_TICKS if station_tables else _PUBLISH_TICKS
        self._epoll = select.epoll()
        for descriptor in descriptors:
            self._epoll.register(descriptor, _ARMED)
        self._node_at = {descriptor: node for node, descriptor in enumerate(descriptors)}
        self._tally = Tally(origin_ns, memory.lateness)
        self._medium = make_medium(self._pulling(descriptors, addresses), self._delivering(descriptors))
        self._medium.now_ns = first_tick * TICK_NS
        self._started_cpu = time.process_time_ns()

    def run(self, until_ns: int = NEVER) -> None:
        """Runs until stopped, or until model time ``until_ns``."""
        medium, clock, origin, cells = self._medium, self._clock, self._origin, self._memory.cells
        epoll, node_at = self._epoll, self._node_at
        poll, wait_for = epoll.poll, select.select
        most = len(node_at)
        look_at_channel = (self._ticks + 1) * TICK_NS
        cells[shared.READY] = 1
        slept = False
        while not cells[shared.STOP] and medium.now_ns < until_ns:
            now = clock() - origin
            until = min(now, look_at_channel)
            if until > medium.now_ns:
                step = medium.now_ns + _STEP_NS
                if until > step:
                    # Not late, only asleep: the frame that woke us came now, not at the last event.
                    until = min(until, max(step, medium.next_delivery_ns()) if slept else step)
                medium.run_until(until)
            slept = False
            for descriptor, _ in poll(0, most):
                medium.offer(node_at[descriptor], medium.now_ns)
            if medium.now_ns >= look_at_channel:
                look_at_channel = self._tick()
            if medium.now_ns < now:
                continue
            # Run ahead of time, but no further than the last event: a frame that arrives now is not delayed.
            medium.run_events(min(now + EARLY_NS, look_at_channel))
            wake = min(medium.next_delivery_ns() - EARLY_NS, look_at_channel)
            pause = wake - (clock() - origin)
            if pause > _SPIN_NS:
                wait_for((epoll,), (), (), pause * 1e-9)
                slept = True
        self._publish()

    def _tick(self) -> int:
        """Applies the nodes' next positions, if the helper has published them; returns when to look again."""
        memory, now = self._memory, self._medium.now_ns
        cells = memory.cells
        if cells[shared.PUBLISHED] == cells[shared.APPLIED]:
            return now + _RETRY_NS
        update = memory.take()
        self._ticks += 1
        due = self._ticks * TICK_NS
        cells[shared.LAG_MAX_NS] = max(cells[shared.LAG_MAX_NS], self._clock() - self._origin - due)
        if update:
            self._medium.apply(update, now)
        if self._ticks % self._publish_ticks == 0:
            self._publish()
        return due + TICK_NS

    def _publish(self) -> None:
        memory, stations = self._memory, self._medium.stations
        cells = memory.cells
        with memory.update():
            self._tally.settle()
            for station in stations:
                rows = [station.link_attempts, station.link_received]
                if self._station_tables:
                    rows += [station.link_acknowledged, station.link_timeouts, station.link_given_up]
                memory.put_links(station.index, *rows)
            memory.put_airtimes([station.air_ns for station in stations])
            cells[shared.LATENESS_MAX_NS] = self._tally.latest_ns
            cells[shared.ACKNOWLEDGED] = sum([station.acknowledged for station in stations])
            cells[shared.BROADCASTS] = sum([station.broadcasts for station in stations])
            cells[shared.TIMEOUTS] = sum([station.timeouts for station in stations])
            cells[shared.GIVEN_UP] = sum([station.given_up for station in stations])
            cells[shared.CPU_NS] = time.process_time_ns() - self._started_cpu
            cells[shared.NOW_NS] = self._medium.now_ns

    # The medium calls these for every frame: closures, because a local name is the cheapest to look up.

    def _pulling(self, descriptors: Sequence[int], addresses: Sequence[bytes]) -> Pull:
        read, rearm, cells = os.read, self._epoll.modify, self._memory.cells
        node_with = {address: node for node, address in enumerate(addresses)}.get

        def pull(node: int) -> Outgoing | None:
            descriptor = descriptors[node]
            while True:
                try:
                    frame = read(descriptor, _LARGEST_READ)
                except BlockingIOError:
                    rearm(descriptor, _ARMED)
                    return None
                except OSError:  # the device is gone, and nothing will come from it any more
                    return None
                destination = node_with(frame[:6])
                if destination is None:
                    if not frame[0] & 1:
                        cells[shared.UNKNOWN_DESTINATION] += 1
                        continue
                    destination = EVERYONE
                return Outgoing(destination, len(frame), frame)

        return pull

    def _delivering(self, descriptors: Sequence[int]) -> Deliver:
        write, clock, cells, note = os.write, self._clock, self._memory.cells, self._tally.note
        poll, node_at, most = self._epoll.poll, self._node_at, len(descriptors)

        def deliver(receiver: int, sender: int, frame: Outgoing) -> None:
            try:
                write(descriptors[receiver], frame.payload)
            except OSError:  # the device is down or gone
                cells[shared.REFUSED] += 1
                return
            medium = self._medium
            now = medium.now_ns
            note(clock() - now)
            # What the receiving kernel does at once (forward, acknowledge, echo) is in its ring by now. It
            # takes no model time, as in virtual time: if it were read only later, it would find the ACK on
            # the air and back off, which costs a chain of five hops a fifth of its throughput.
            for descriptor, _ in poll(0, most):
                medium.offer(node_at[descriptor], now)

        return deliver
