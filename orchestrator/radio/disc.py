"""The simplest shared medium: nodes receive each other within a radius, and one sends at a time.

A frame occupies its sender and all nodes in range for its airtime; other frames wait. There are no collisions
and no noise: a unicast frame fails only if its destination is out of range when it ends.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import combinations
from math import inf

from orchestrator.radio.changes import UNCHANGED, AirChanges
from orchestrator.radio.medium import BROADCAST, Frame, OnFrame, Schedule

NS = 1_000_000_000
HOP_COST = 1.0


@dataclass
class StationCounters:
    """Counts frames by the node that sent them; ``received`` by the node that received them."""

    sent: int = 0
    failed: int = 0
    queue_drops: int = 0
    received: int = 0
    air_ns: int = 0
    """How long it has sent."""


def _ignore(frame: Frame) -> None:
    """Stands in for the receiver of a node that has a position but no network stack yet."""


@dataclass(slots=True, eq=False)
class _Station:
    name: str
    received: OnFrame = _ignore
    failed: OnFrame = _ignore
    queue: deque[Frame] = field(default_factory=deque)
    contending: bool = False
    busy_until_ns: int = 0
    neighbours: "dict[str, _Station]" = field(default_factory=dict)
    counters: StationCounters = field(default_factory=StationCounters)


class DiscRadio:
    """Implements ``Medium``. Positions are in metres; call ``move`` when they change."""

    def __init__(
        self,
        schedule: Schedule,
        range_m: float,
        bandwidth_bps: int,
        latency_ns: int = 0,
        queue_limit: int = 100,
    ) -> None:
        if range_m <= 0 or bandwidth_bps <= 0 or latency_ns < 0 or queue_limit < 1:
            raise ValueError("range, bandwidth and queue limit must be positive, latency not negative")
        self._schedule = schedule
        self._range_m = range_m
        self._bandwidth_bps = bandwidth_bps
        self._latency_ns = latency_ns
        self._queue_limit = queue_limit
        self._stations: dict[str, _Station] = {}

    def attach(self, node: str, received: OnFrame, failed: OnFrame) -> None:
        station = self._station(node)
        station.received = received
        station.failed = failed

    def move(self, positions: Mapping[str, tuple[float, float]], changes: AirChanges = UNCHANGED) -> None:
        """Moves all nodes to ``positions``, which are those after ``changes``; a node that is not in it is
        out of range of all others. A link is there or not: one that is only weakened stays.
        """
        lost = changes.loss_db() if changes.affects_links() else None
        limit = self._range_m * self._range_m
        for station in self._stations.values():
            station.neighbours = {}
        placed = [
            (self._station(node), x, y) for node, (x, y) in positions.items() if node not in changes.silent
        ]
        for (here, x, y), (there, other_x, other_y) in combinations(placed, 2):
            dx, dy = x - other_x, y - other_y
            if dx * dx + dy * dy <= limit and (lost is None or lost(here.name, there.name) < inf):
                here.neighbours[there.name] = there
                there.neighbours[here.name] = here

    def links(self) -> dict[str, dict[str, float]]:
        return {
            station.name: dict.fromkeys(station.neighbours, HOP_COST) for station in self._stations.values()
        }

    def counters(self) -> dict[str, StationCounters]:
        return {station.name: station.counters for station in self._stations.values()}

    def airtimes_ns(self) -> dict[str, int]:
        """Returns how long each node has sent so far."""
        return {station.name: station.counters.air_ns for station in self._stations.values()}

    def airtime_ns(self, size: int) -> int:
        return -(-size * 8 * NS // self._bandwidth_bps)

    def send(self, frame: Frame) -> None:
        station = self._station(frame.source)
        if len(station.queue) >= self._queue_limit:
            station.counters.queue_drops += 1
            return
        station.queue.append(frame)
        if not station.contending:
            station.contending = True
            # Not at once: nodes that waited for this moment go first.
            self._schedule.call_at_ns(self._schedule.now_ns(), self._contend, station)

    def _station(self, node: str) -> _Station:
        station = self._stations.get(node)
        if station is None:
            station = self._stations[node] = _Station(node)
        return station

    def _contend(self, station: _Station) -> None:
        """Takes the channel if it is free around ``station``, otherwise queues behind the nodes that wait."""
        now = self._schedule.now_ns()
        if station.busy_until_ns > now:
            self._schedule.call_at_ns(station.busy_until_ns, self._contend, station)
            return
        frame = station.queue.popleft()
        duration = self.airtime_ns(frame.size)
        end = now + duration
        station.busy_until_ns = end
        for neighbour in station.neighbours.values():
            if neighbour.busy_until_ns < end:
                neighbour.busy_until_ns = end
        station.counters.sent += 1
        station.counters.air_ns += duration
        self._schedule.call_at_ns(end, self._finish, station, frame)

    def _finish(self, station: _Station, frame: Frame) -> None:
        if frame.destination == BROADCAST:
            self._deliver(frame, list(station.neighbours.values()))
        elif receiver := station.neighbours.get(frame.destination):
            self._deliver(frame, [receiver])
        else:
            station.counters.failed += 1
            station.failed(frame)
        if station.queue:
            self._schedule.call_at_ns(self._schedule.now_ns(), self._contend, station)
        else:
            station.contending = False

    def _deliver(self, frame: Frame, receivers: list[_Station]) -> None:
        if self._latency_ns:
            at = self._schedule.now_ns() + self._latency_ns
            self._schedule.call_at_ns(at, self._hand_over, frame, receivers)
        else:
            self._hand_over(frame, receivers)

    def _hand_over(self, frame: Frame, receivers: list[_Station]) -> None:
        for receiver in receivers:
            receiver.counters.received += 1
            receiver.received(frame)
