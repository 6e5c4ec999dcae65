"""Runs the agents' own state machines over contacts, message by message, in virtual time.

Each node is a ``Machine``, as on an agent; links carry one message after another in each direction while they
are up, and what is under way when a contact ends is lost. A node that crashes loses all but its journal.
"""

import heapq
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from benchmarks.comet.contacts import Schedule
from node_agent.apps.comet.claims import refusal
from node_agent.apps.comet.events import Detection, Instance
from node_agent.apps.comet.journal import Journal, opened
from node_agent.apps.comet.machine import Machine
from node_agent.apps.comet.messages import (
    Acknowledged,
    Ask,
    Carry,
    Entry,
    Heard,
    Marks,
    Message,
    Occurred,
    Passed,
    Received,
    Told,
)
from node_agent.apps.comet.node_plan import MOMENT, NodePlan
from node_agent.apps.comet.outbox import size_of
from node_agent.apps.comet.telling import Teller

MARK_SIZE = 12
"""Bytes of one mark."""
HEAD_SIZE = 40
"""Bytes around a message of marks."""


@dataclass(frozen=True)
class Wire:
    """A link between two nodes, the same in both directions."""

    bandwidth: float
    latency: float
    schedule: Schedule


@dataclass(frozen=True)
class Crash:
    node: str
    at: float
    lasts: float


@dataclass
class Sent:
    """What went over one direction of a link."""

    events: int = 0
    requests: int = 0
    marks: int = 0
    bytes: float = 0.0


@dataclass
class Outcome:
    """``found``: each detection with when it was told, by request. ``most_kept``: instances in stores."""

    found: list[tuple[str, Detection, float]] = field(default_factory=list)
    sent: dict[tuple[str, str], Sent] = field(default_factory=dict)
    cut: int = 0
    crashes: int = 0
    dropped: int = 0
    refused: int = 0


@dataclass
class _Node:
    machine: Machine
    journal: Journal | None
    path: Path | None
    up: bool = True
    starts: int = 0
    missed: list[Instance] = field(default_factory=list)


class _Direction:
    """Sends from one node to the other during one contact."""

    def __init__(self, run: "Execution", sender: str, receiver: str, wire: Wire, ends: float) -> None:
        self.run, self.sender, self.receiver, self.wire, self.ends = run, sender, receiver, wire, ends
        self.open = True
        self.starts = self._starts()
        self.busy = False
        self.cursor = 0
        self.teller = Teller(run.nodes[sender].machine, receiver)
        self.wake = -1.0

    def begin(self) -> None:
        """The receiver says how far it got."""
        taken = self.run.nodes[self.receiver].machine.state.taken[self.sender]
        self.cursor = taken
        self.run.apply(self.sender, Acknowledged(self.run.now, self.receiver, taken))
        self.go_on()

    def go_on(self) -> None:
        if not self.open or self.busy:
            return
        machine = self.run.nodes[self.sender].machine
        limits = machine.plan.limits
        for number, message in machine.waiting(self.receiver):
            if number > self.cursor:
                self.transmit(size_of(message, limits), partial(self.arrived, number, message))
                self.cursor = number
                self.run.count(self, message, size_of(message, limits))
                return
        due = self.teller.due(self.run.now)
        if due <= self.run.now:
            marks = self.teller.told(self.run.now)
            size = HEAD_SIZE + MARK_SIZE * (len(marks.up) + len(marks.down))
            self.run.count(self, None, size)
            self.transmit(size, partial(self.heard, marks))
        elif self.wake <= self.run.now or due < self.wake:
            self.wake = due
            self.run.at(due, self.go_on)

    def transmit(self, size: float, action: Callable[[], None]) -> None:
        self.busy = True
        done = self.run.now + size / self.wire.bandwidth
        self.run.at(done, partial(self.transmitted, action))

    def transmitted(self, action: Callable[[], None]) -> None:
        """What has left in time arrives, unless a crash breaks the connection."""
        if not self.open:
            self.run.outcome.cut += 1
            return
        self.busy = False
        self.run.at(self.run.now + self.wire.latency, partial(self.arrive, action))
        self.go_on()

    def arrive(self, action: Callable[[], None]) -> None:
        if self.starts == self._starts():
            action()

    def _starts(self) -> tuple[int, int]:
        return self.run.nodes[self.sender].starts, self.run.nodes[self.receiver].starts

    def arrived(self, number: int, message: Message) -> None:
        self.run.take(self.receiver, Received(self.run.now, self.sender, number, message))
        self.run.at(
            self.run.now + self.wire.latency, partial(self.arrive, partial(self.acknowledged, number))
        )

    def acknowledged(self, number: int) -> None:
        self.run.apply(self.sender, Acknowledged(self.run.now, self.receiver, number))

    def heard(self, marks: Marks) -> None:
        self.run.take(self.receiver, Heard(self.run.now, self.sender, marks))


class Execution:
    """``folder``: for journals; None: nodes do not crash and write none."""

    def __init__(
        self,
        plans: Mapping[str, NodePlan],
        wires: Mapping[tuple[str, str], Wire],
        instances: Sequence[tuple[str, Instance]],
        crashes: Sequence[Crash] = (),
        folder: Path | None = None,
        seed: int = 0,
    ) -> None:
        self.now = 0.0
        self.outcome = Outcome()
        self.rng = random.Random(f"comet/execution/{seed}")
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._number = 0
        self._wires = wires
        self._directions: dict[tuple[str, str], _Direction] = {}
        self.nodes: dict[str, _Node] = {}
        for name, plan in plans.items():
            path = None if folder is None else folder / name
            machine, journal = (Machine(plan), None) if path is None else opened(path, plan)
            self.nodes[name] = _Node(machine, journal, path)
        for node, instance in instances:
            if node in self.nodes:
                self.at(instance.end, partial(self.occur, node, instance))
        for pair, wire in wires.items():
            if all(name in self.nodes and other in plans[name].neighbours for name, other in _ways(pair)):
                for begin, end in wire.schedule.ups:
                    self.at(begin, partial(self.connect, pair, wire, end))
                    self.at(end, partial(self.disconnect, pair))
        for crash in crashes:
            if crash.node in self.nodes:
                self.at(crash.at, partial(self.crash, crash))

    def at(self, time: float, action: Callable[[], None]) -> None:
        self._number += 1
        heapq.heappush(self._queue, (time, self._number, action))

    def run(self, until: float) -> Outcome:
        while self._queue and self._queue[0][0] <= until:
            self.now, _, action = heapq.heappop(self._queue)
            action()
        for node in self.nodes.values():
            self.outcome.dropped += len(node.machine.dropped)
            if node.journal is not None:
                node.journal.close()
        return self.outcome

    def occur(self, name: str, instance: Instance) -> None:
        node = self.nodes[name]
        if node.up:
            self.apply(name, Occurred(instance))
        else:
            node.missed.append(instance)

    def take(self, name: str, entry: Received | Heard) -> None:
        if refusal(self.nodes[name].machine.plan, entry) is not None:
            self.outcome.refused += 1
        else:
            self.apply(name, entry)

    def apply(self, name: str, entry: Entry) -> None:
        node = self.nodes[name]
        assert node.up, "a node that is down takes nothing"
        if node.journal is not None:
            node.journal.write(entry)
        node.machine.apply(entry)
        self.outcome.dropped += len(node.machine.dropped)
        node.machine.dropped.clear()
        node.machine.observed.clear()
        if node.journal is not None:
            node.journal.tidy(node.machine)
        self.tell(name)
        conclusion = node.machine.next_conclusion()
        if conclusion is not None and not isinstance(entry, Acknowledged):
            self.at(max(conclusion, self.now) + MOMENT, partial(self.passed, name, node.starts))
        for neighbour in node.machine.plan.neighbours:
            direction = self._directions.get((name, neighbour))
            if direction is not None:
                direction.go_on()

    def passed(self, name: str, starts: int) -> None:
        if self.nodes[name].up and self.nodes[name].starts == starts:
            self.apply(name, Passed(self.now))

    def tell(self, name: str) -> None:
        node = self.nodes[name]
        untold = list(node.machine.state.untold)
        if not untold:
            return
        for found in untold:
            self.outcome.found.append((found.request, found.detection, self.now))
        entry = Told(self.now, untold[-1].number)
        if node.journal is not None:
            node.journal.write(entry)
        node.machine.apply(entry)

    def connect(self, pair: tuple[str, str], wire: Wire, ends: float) -> None:
        if not all(self.nodes[name].up for name in pair):
            return
        for sender, receiver in _ways(pair):
            self._directions[sender, receiver] = _Direction(self, sender, receiver, wire, ends)
        for way in _ways(pair):
            if way in self._directions:
                self._directions[way].begin()

    def disconnect(self, pair: tuple[str, str]) -> None:
        for way in _ways(pair):
            direction = self._directions.pop(way, None)
            if direction is not None:
                direction.open = False

    def crash(self, crash: Crash) -> None:
        node = self.nodes[crash.node]
        if not node.up or node.path is None:
            return
        self.outcome.crashes += 1
        node.up = False
        node.starts += 1
        assert node.journal is not None
        node.journal.close()
        with node.path.open("ab") as file:  # an entry that was not written to its end
            file.write(self.rng.randbytes(self.rng.randrange(0, 30)))
        for pair in self._wires:
            if crash.node in pair:
                self.disconnect(pair)
        self.at(self.now + crash.lasts, partial(self.restart, crash.node))

    def restart(self, name: str) -> None:
        node = self.nodes[name]
        assert node.path is not None
        node.machine, node.journal = opened(node.path, node.machine.plan)
        node.up = True
        for instance in node.missed:
            self.apply(name, Occurred(instance))
        node.missed.clear()
        self.tell(name)
        self.passed(name, node.starts)
        for pair, wire in self._wires.items():
            if name in pair:
                for begin, end in wire.schedule.ups:
                    if begin <= self.now < end and (pair in self._directions) is False:
                        known = all(each in self.nodes for each in pair)
                        if known and pair[1] in self.nodes[pair[0]].machine.plan.neighbours:
                            self.connect(pair, wire, end)

    def count(self, direction: _Direction, message: Message | None, size: float) -> None:
        sent = self.outcome.sent.setdefault((direction.sender, direction.receiver), Sent())
        sent.bytes += size
        if isinstance(message, Carry):
            sent.events += 1
        elif isinstance(message, Ask):
            sent.requests += 1
        else:
            sent.marks += 1


def _ways(pair: tuple[str, str]) -> tuple[tuple[str, str], tuple[str, str]]:
    return pair, (pair[1], pair[0])
