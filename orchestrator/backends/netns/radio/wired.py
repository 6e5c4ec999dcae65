"""The medium of the real-time loop with cables beside the radio: two media in one model time.

A node with a cable is read dry: what goes by cable must not wait in its ring behind what waits for the radio.
"""

import marshal
from collections import deque
from collections.abc import Callable, Sequence

from orchestrator.backends.netns.radio.driven import (
    AGAIN_NS,
    MOST_AT_ONCE,
    DrivenDcf,
    DrivenPipes,
    StationCounts,
)
from orchestrator.radio.exchanges import Deliver, Pull
from orchestrator.radio.pipes import PipeTable
from orchestrator.radio.station import EVERYONE, Outgoing
from orchestrator.radio.wires import WIRE_QUEUE

MakeRadio = Callable[[Pull, Deliver], DrivenDcf]
_ROWS = ("link_attempts", "link_received", "link_acknowledged", "link_timeouts", "link_given_up")
_SUMS = ("acknowledged", "broadcasts", "timeouts", "given_up", "air_ns")


class DrivenWired:
    """``ends``: by node, whom its cables lead to, be they cut or not."""

    def __init__(
        self,
        make_radio: MakeRadio,
        table: PipeTable,
        ends: Sequence[frozenset[int]],
        queue_limit: int,
        pull: Pull,
        deliver: Deliver,
    ) -> None:
        self.now_ns = 0
        self._ends, self._queue_limit = ends, queue_limit
        self._read, self._hand_over = pull, deliver
        self._for_radio: list[deque[Outgoing]] = [deque() for _ in ends]
        self._radio = make_radio(self._next_for_radio, self._from_radio)
        self._pipes = DrivenPipes(table, WIRE_QUEUE, pull, self._from_wire)

    @property
    def stations(self) -> Sequence[StationCounts]:
        both = zip(self._radio.stations, self._pipes.stations, strict=True)
        return [_Joined(radio, wire, self._ends[radio.index]) for radio, wire in both]

    def offer(self, node: int, now_ns: int) -> None:
        self.now_ns = now_ns
        if self._ends[node]:
            self._sort(node, now_ns)
        self._radio.offer(node, now_ns)

    def run_until(self, until_ns: int) -> None:
        self.run_events(until_ns)
        self.now_ns = self._radio.now_ns = self._pipes.now_ns = until_ns

    def run_events(self, until_ns: int) -> int:
        radio, pipes = self._radio, self._pipes
        while True:
            by_wire, by_radio = pipes.next_delivery_ns(), radio.next_event_ns()
            if min(by_wire, by_radio) > until_ns:
                return min(by_wire, by_radio)
            if by_wire <= by_radio:
                pipes.run_events(by_wire)
                self.now_ns = pipes.now_ns
            else:  # it returns early if something is put on a cable
                radio.run_events(min(until_ns, by_wire))
                self.now_ns = radio.now_ns

    def next_delivery_ns(self) -> int:
        return min(self._radio.next_delivery_ns(), self._pipes.next_delivery_ns())

    def apply(self, data: bytes, now_ns: int) -> None:
        channel, table = marshal.loads(data)
        self._radio.apply(channel, now_ns)
        self._pipes.apply(table, now_ns)

    def _sort(self, node: int, now_ns: int) -> None:
        """Reads what the node sends, and puts it on its cables and into its queue for the radio."""
        ends, queue, pipes = self._ends[node], self._for_radio[node], self._pipes
        for _ in range(MOST_AT_ONCE):
            frame = self._read(node)
            if frame is None:
                return
            if frame.destination in ends:
                pipes.send(node, frame, now_ns)
            else:
                if frame.destination == EVERYONE:
                    pipes.send(node, frame, now_ns)
                if len(queue) < self._queue_limit:
                    queue.append(frame)
                else:
                    pipes.stations[node].queue_drops += 1
            self._radio.pause()
        pipes.call(now_ns + AGAIN_NS, self.offer, node, now_ns + AGAIN_NS)

    def _next_for_radio(self, node: int) -> Outgoing | None:
        if not self._ends[node]:
            return self._read(node)
        queue = self._for_radio[node]
        return queue.popleft() if queue else None

    def _from_radio(self, receiver: int, sender: int, frame: Outgoing) -> None:
        if receiver not in self._ends[sender]:
            self.now_ns = self._radio.now_ns
            self._hand_over(receiver, sender, frame)

    def _from_wire(self, receiver: int, sender: int, frame: Outgoing) -> None:
        self.now_ns = self._pipes.now_ns
        self._hand_over(receiver, sender, frame)


class _Joined:
    """What a node has sent: over cables where it has them, by radio elsewhere."""

    def __init__(self, radio: StationCounts, wire: StationCounts, ends: frozenset[int]) -> None:
        self.index = radio.index
        rows = [_row(getattr(radio, name), getattr(wire, name), ends) for name in _ROWS]
        self.link_attempts, self.link_received, self.link_acknowledged = rows[:3]
        self.link_timeouts, self.link_given_up = rows[3:]
        sums = [getattr(radio, name) + getattr(wire, name) for name in _SUMS]
        self.acknowledged, self.broadcasts, self.timeouts, self.given_up, self.air_ns = sums
        self.broadcasts = radio.broadcasts  # each goes out by radio, too


def _row(radio: list[int], wire: list[int], ends: frozenset[int]) -> list[int]:
    if not ends:
        return radio
    row = radio.copy()
    for there in ends:
        row[there] = wire[there]
    return row


def packed_both(channel: bytes, table: bytes) -> bytes:
    return marshal.dumps((channel, table))
