"""Links that come and go: each is a pipe between two nodes, with a rate and a latency of its own.

There is no shared channel: a node sends over all its links at once, and nobody else hears it. A frame that is
on its way into a link when that goes down is lost, and so are those that wait for it. A frame that was sent
whole arrives.
"""

import marshal
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from orchestrator.contacts.plan import ContactLink
from orchestrator.radio.changes import UNCHANGED, AirChanges
from orchestrator.radio.exchanges import Deliver, GiveUp
from orchestrator.radio.station import EVERYONE, Outgoing

NS = 1_000_000_000
CallAt = Callable[..., None]
"""Takes a moment in ns, a function, and what to call it with."""

PipeTable = list[dict[int, tuple[int, int]]]
"""For each node, by number: whom it can send to now, at how many bit/s and with how many ns of latency."""


def pipe_table(up: Iterable[ContactLink], nodes: Sequence[str], changes: AirChanges = UNCHANGED) -> PipeTable:
    """Returns the pipes of the links that are up, without those that ``changes`` cut."""
    number = {node: index for index, node in enumerate(nodes)}
    lost = changes.loss_db() if changes.affects_links() else None
    table: PipeTable = [{} for _ in nodes]
    for link in up:
        if link.a in changes.silent or link.b in changes.silent:
            continue
        if lost is not None and lost(link.a, link.b) == float("inf"):
            continue
        for sender, receiver in link.directions:
            table[number[sender]][number[receiver]] = round(link.rate), round(link.latency * NS)
    return table


class PipeStation:
    """What a node has sent; lists are by receiver. The names are those of 802.11b's stations, so that one
    recorder serves both.
    """

    def __init__(self, index: int, count: int) -> None:
        self.index = index
        self.link_attempts = [0] * count
        self.link_received = [0] * count
        self.link_acknowledged = [0] * count
        self.link_timeouts = [0] * count
        self.link_given_up = [0] * count
        self.acknowledged = 0
        self.broadcasts = 0
        self.timeouts = 0
        self.given_up = 0
        self.queue_drops = 0
        self.air_ns = 0  # it stays so: there is no air that others would have to share


@dataclass(slots=True, eq=False)
class _Pipe:
    sender: int
    receiver: int
    rate: int
    latency_ns: int
    queue: deque[Outgoing]
    sending: Outgoing | None = None
    closed: bool = False


class Pipes:
    """Carries frames between nodes, which are numbers. ``call_at`` calls a function at a moment of model
    time; ``give_up`` hears of unicast frames that cannot arrive.
    """

    def __init__(
        self, count: int, queue_limit: int, call_at: CallAt, deliver: Deliver, give_up: GiveUp
    ) -> None:
        self.stations = [PipeStation(index, count) for index in range(count)]
        self._queue_limit = queue_limit
        self._call_at, self._deliver, self._give_up = call_at, deliver, give_up
        self._pipes: list[dict[int, _Pipe]] = [{} for _ in range(count)]

    def use(self, table: PipeTable) -> None:
        """Lets exactly these links be up from now on."""
        closed: list[_Pipe] = []
        for sender, (pipes, wanted) in enumerate(zip(self._pipes, table, strict=True)):
            for receiver in [each for each in pipes if each not in wanted]:
                closed.append(pipes.pop(receiver))
            for receiver, (rate, latency_ns) in wanted.items():
                pipe = pipes.get(receiver)
                if pipe is None:
                    pipes[receiver] = _Pipe(sender, receiver, rate, latency_ns, deque())
                else:
                    pipe.rate, pipe.latency_ns = rate, latency_ns
        for pipe in closed:  # only now: senders that hear of it may send at once
            self._close(pipe)

    def send(self, sender: int, frame: Outgoing, now_ns: int) -> None:
        pipes, station = self._pipes[sender], self.stations[sender]
        if frame.destination == EVERYONE:
            station.broadcasts += 1
            for pipe in pipes.values():
                self._put(pipe, frame, now_ns)
            return
        pipe_there = pipes.get(frame.destination)
        if pipe_there is None:
            self._lose(sender, frame.destination, frame)
        else:
            self._put(pipe_there, frame, now_ns)

    def _put(self, pipe: _Pipe, frame: Outgoing, now_ns: int) -> None:
        if pipe.sending is None:
            self._begin(pipe, frame, now_ns)
        elif len(pipe.queue) < self._queue_limit:
            pipe.queue.append(frame)
        else:
            self.stations[pipe.sender].queue_drops += 1

    def _begin(self, pipe: _Pipe, frame: Outgoing, now_ns: int) -> None:
        pipe.sending = frame
        end = now_ns - (-frame.size * 8 * NS // pipe.rate)
        self._call_at(end, self._end, pipe, frame, end)

    def _end(self, pipe: _Pipe, frame: Outgoing, now_ns: int) -> None:
        if pipe.closed:
            return
        pipe.sending = None
        if pipe.queue:
            self._begin(pipe, pipe.queue.popleft(), now_ns)
        station = self.stations[pipe.sender]
        station.link_attempts[pipe.receiver] += 1
        station.link_received[pipe.receiver] += 1
        if frame.destination != EVERYONE:
            station.acknowledged += 1
            station.link_acknowledged[pipe.receiver] += 1
        if pipe.latency_ns:
            self._call_at(now_ns + pipe.latency_ns, self._deliver, pipe.receiver, pipe.sender, frame)
        else:
            self._deliver(pipe.receiver, pipe.sender, frame)

    def _close(self, pipe: _Pipe) -> None:
        pipe.closed = True
        cut = [] if pipe.sending is None else [pipe.sending]
        self.stations[pipe.sender].link_attempts[pipe.receiver] += len(cut)
        for frame in (*cut, *pipe.queue):
            if frame.destination != EVERYONE:
                self._lose(pipe.sender, pipe.receiver, frame)
        pipe.queue.clear()

    def _lose(self, sender: int, receiver: int, frame: Outgoing) -> None:
        station = self.stations[sender]
        station.given_up += 1
        station.link_given_up[receiver] += 1
        self._give_up(sender, frame)


def packed_table(table: PipeTable) -> bytes:
    return marshal.dumps(table)


def unpacked_table(data: bytes) -> PipeTable:
    """``data`` must be our own: this is not for bytes from elsewhere."""
    table: PipeTable = marshal.loads(data)
    return table


def named_links(table: PipeTable, nodes: Sequence[str]) -> dict[str, dict[str, float]]:
    """Returns the links as ground truth has them: every frame takes one transmission."""
    return {
        nodes[sender]: {nodes[receiver]: 1.0 for receiver in sorted(pipes)}
        for sender, pipes in enumerate(table)
    }
