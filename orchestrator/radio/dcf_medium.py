"""Implements ``Medium`` with the 802.11b channel: node names and queues around the DCF, driven by a Schedule.

A frame's ``size`` is that of its IP packet, as virtual hosts count it.
"""

import random
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

from node_agent.model.link_layer import LinkReading
from orchestrator.errors import BadInput
from orchestrator.radio.airtime import ETHERNET_HEADER, LARGEST_FRAME, check_size
from orchestrator.radio.channel import Channel, Position, build_channel
from orchestrator.radio.contention import NEVER
from orchestrator.radio.dcf import Dcf
from orchestrator.radio.medium import BROADCAST, Frame, OnFrame, Schedule
from orchestrator.radio.settings import Mac, Radio
from orchestrator.radio.station import EVERYONE, Outgoing
from orchestrator.radio.station_table import StationTable
from orchestrator.radio.survey import sensitivity_dbm


class LinkCounters(NamedTuple):
    """Counts what a node has sent, by receiver. A broadcast counts for every node in range."""

    attempts: list[int]
    received: list[int]


class NodeTruth(NamedTuple):
    """Counts what happened to a node's frames. ``timeouts``: transmissions without an answer."""

    node: str
    acknowledged: int
    broadcasts: int
    timeouts: int
    given_up: int
    queue_drops: int


class DcfMedium:
    def __init__(
        self,
        schedule: Schedule,
        nodes: Sequence[str],
        positions: Sequence[Position],
        radio: Radio,
        mac: Mac,
        seed: int,
    ) -> None:
        if len(positions) != len(nodes):
            raise BadInput(f"{len(positions)} positions were given for {len(nodes)} nodes")
        self._schedule = schedule
        self._names = tuple(nodes)
        self._index = {name: index for index, name in enumerate(nodes)}
        if len(self._index) != len(nodes):
            raise BadInput("two nodes of a channel have the same name")
        self._destinations = {**self._index, BROADCAST: EVERYONE}
        self._radio, self._mac = radio, mac
        self._queues: list[deque[Outgoing]] = [deque() for _ in nodes]
        self._queue_drops = [0] * len(nodes)
        self._received: list[OnFrame | None] = [None] * len(nodes)
        self._failed: list[OnFrame | None] = [None] * len(nodes)
        self._wake_at = NEVER
        self._running = False
        channel = build_channel(radio, mac, positions)
        rng = random.Random(f"medium/{seed}")
        self._dcf = Dcf(channel, mac, rng, self._pull, self._deliver, self._give_up)

    def attach(self, node: str, received: OnFrame, failed: OnFrame) -> None:
        index = self._known(node)
        self._received[index], self._failed[index] = received, failed

    def send(self, frame: Frame) -> None:
        try:
            source, destination = self._index[frame.source], self._destinations[frame.destination]
        except KeyError as error:
            raise _unknown(error.args[0]) from None
        if destination == source:
            raise BadInput(f"{frame.source} cannot send a frame to itself")
        queue = self._queues[source]
        if len(queue) >= self._mac.queue_limit:
            self._queue_drops[source] += 1
            return
        size = frame.size + ETHERNET_HEADER
        if not ETHERNET_HEADER <= size <= LARGEST_FRAME:
            check_size(size)
        queue.append(Outgoing(destination, size, frame))
        if self._running:
            self._dcf.offer(source, self._dcf.now_ns)
        else:
            self._dcf.offer(source, self._schedule.now_ns())
            self._arm(self._dcf.next_event_ns())

    def move(self, positions: Sequence[Position]) -> None:
        """Moves the nodes to positions in the order of their names."""
        if len(positions) != len(self._names):
            raise BadInput(f"{len(positions)} positions were given for {len(self._names)} nodes")
        self.use_channel(build_channel(self._radio, self._mac, positions))

    def use_channel(self, channel: Channel) -> None:
        """Uses a channel that was computed elsewhere: from measured meshes or precomputed losses."""
        if channel.node_count != len(self._names):
            raise BadInput(f"a channel of {channel.node_count} nodes was given for {len(self._names)} nodes")
        self._dcf.move(channel, self._schedule.now_ns())
        self._arm(self._dcf.next_event_ns())

    @property
    def sensitivity_dbm(self) -> float:
        return sensitivity_dbm(self._radio, self._mac)

    def station_table(self, node: str) -> Callable[[], dict[str, LinkReading]]:
        """Returns a function that reads what the radio of ``node`` knows of its links."""
        index, table = self._known(node), StationTable(len(self._names))

        def read() -> dict[str, LinkReading]:
            own, stations = self._dcf.stations[index], self._dcf.stations
            received = [station.link_received[index] for station in stations]
            power_mw = [row[index] for row in self._dcf.channel.power_mw]
            sent = own.link_acknowledged, own.link_timeouts, own.link_given_up
            readings = table.read(received, *sent, power_mw, self._schedule.now_ns())
            return {self._names[there]: reading for there, reading in readings.items()}

        return read

    def link_counters(self) -> list[LinkCounters]:
        return [LinkCounters(s.link_attempts.copy(), s.link_received.copy()) for s in self._dcf.stations]

    def airtimes_ns(self) -> dict[str, int]:
        """Returns how long each node has sent so far."""
        return {name: s.air_ns for name, s in zip(self._names, self._dcf.stations, strict=True)}

    def node_truth(self) -> list[NodeTruth]:
        return [
            NodeTruth(name, s.acknowledged, s.broadcasts, s.timeouts, s.given_up, drops)
            for name, s, drops in zip(self._names, self._dcf.stations, self._queue_drops, strict=True)
        ]

    def _known(self, node: str) -> int:
        index = self._index.get(node)
        if index is None:
            raise _unknown(node)
        return index

    def _arm(self, at: int) -> None:
        if at < self._wake_at:
            self._wake_at = at
            self._schedule.call_at_ns(at, self._wake, at)

    def _wake(self, at: int) -> None:
        if at != self._wake_at:
            return  # an earlier wake-up was scheduled since
        self._wake_at = NEVER
        free_until_ns = self._schedule.free_until_ns
        self._running = True
        try:
            following = self._dcf.run_events(free_until_ns(), free_until_ns)
        finally:
            self._running = False
        self._arm(following)

    def _pull(self, node: int) -> Outgoing | None:
        queue = self._queues[node]
        return queue.popleft() if queue else None

    # Before somebody acts, the clock must be right; afterwards something else may happen earlier than before.

    def _deliver(self, receiver: int, sender: int, frame: Outgoing) -> None:
        if self._dcf.pause():
            self._schedule.jump_to_ns(self._dcf.now_ns)
        received = self._received[receiver]
        if received is not None:
            received(frame.payload)

    def _give_up(self, sender: int, frame: Outgoing) -> None:
        if self._dcf.pause():
            self._schedule.jump_to_ns(self._dcf.now_ns)
        failed = self._failed[sender]
        if failed is not None:
            failed(frame.payload)


def _unknown(node: str) -> BadInput:
    return BadInput(f'there is no node "{node}" on this channel')
