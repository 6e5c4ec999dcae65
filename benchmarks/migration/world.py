"""Runs an operator that moves between hosts while events flow, in virtual time, with delays and kills.

Connections are in order and late. A kill takes a process in the middle of what it does: of the effects of
its last step only the first ones happen, and of what it has sent last some is lost. It comes back with its
journal after a while, or never, or long after it was taken for gone.
"""

import heapq
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random

from benchmarks.migration.operators import Operator, Rule, random_inputs, random_rule
from node_agent.migration.live.coordinator import Coordinator, CoordinatorJournal, Phase
from node_agent.migration.live.host import Host
from node_agent.migration.live.journal import Journal
from node_agent.migration.live.messages import Deliver, Effect, Keep, Message, Note, Sent, Store
from node_agent.migration.live.neighbours import Downstream, Upstream
from node_agent.migration.live.values import Limits, Method, Order, card_of

HOSTS = ("h0", "h1", "h2")
COORDINATOR = "c"
END = 400.0
"""Ticks end here; messages under way still come."""


@dataclass(frozen=True)
class Kill:
    """``victim``: ``source``, ``target`` or ``coordinator`` of the migration with that number. ``at``: in
    which of its steps. ``back``: seconds until it starts again; None: never. ``mourned``: whether it is taken
    for gone meanwhile."""

    victim: str
    migration: int
    at: int
    back: float | None
    mourned: bool


@dataclass(frozen=True)
class World:
    seed: int
    rule: Rule
    inputs: dict[str, list[bytes]]
    sinks: tuple[str, ...]
    state: bytes
    chunk: int
    limits: Limits
    migrations: int
    """How many are ordered."""
    late: bool
    """Whether deadlines are too early to be kept."""
    kill: Kill | None = None


def world(seed: int) -> World:
    random = Random(f"moving {seed}")
    rule = random_rule(random)
    few = random.random() < 0.3
    limits = Limits(
        items=random.randint(24, 40) if few else 65_536,
        pending=random.choice((1, 3, 4096)),
        window=random.randint(1, 6),
        batch=random.randint(1, 20),
        grain=random.choice((1, 4, 32)),
        step=random.uniform(0, 2),
    )
    return World(
        seed,
        rule,
        random_inputs(random, rule),
        tuple(f"d{n}" for n in range(random.randint(1, 2))),
        random.randbytes(random.choice((0, 1, random.randint(2, 4_000)))),
        random.randint(1, 600) if not few else 997,
        limits,
        random.randint(1, 4),
        random.random() < 0.2,
    )


def with_kill(made: World, steps: Counter[tuple[str, int, bool]]) -> World:
    """The same with a random kill in the middle of a migration. ``steps``: of the run without it, by process
    and migration, and whether it could die there for good."""
    random = Random(f"kill {made.seed}")
    victim = random.choice(("source", "target", "coordinator"))
    back = random.choice((None, random.uniform(0.5, 30)))
    mourned = victim != "coordinator" and (back is None or random.random() < 0.4)
    for_good = victim != "coordinator" and mourned
    numbers = [n for who, n, good in steps if who == victim and good == for_good]
    if not numbers:
        return made
    number = random.choice(sorted(numbers))
    at = random.randrange(steps[victim, number, for_good]) + 1
    return replace(made, kill=Kill(victim, number, at, back, mourned))


@dataclass
class Process:
    """What survives a kill is in ``journal`` and ``state``."""

    name: str
    machine: Host | Coordinator | Upstream | Downstream
    journal: object = None
    state: bytes | None = None
    boot: int = 0
    alive: bool = True


@dataclass
class Outcome:
    """``owners``: hosts that run the operator at the end. ``kept``: items that upstreams still keep."""

    delivered: dict[str, list[bytes]] = field(default_factory=lambda: defaultdict(list))
    notes: list[Note] = field(default_factory=list)
    owners: tuple[str, ...] = ()
    messages: int = 0
    killed: bool = False
    kept: int = 0
    open_phase: str = ""
    steps: Counter[tuple[str, int, bool]] = field(default_factory=Counter)


class Network:
    def __init__(self, made: World) -> None:
        self.world = made
        self.outcome = Outcome()
        self._random = Random(f"network {made.seed}")
        self._now = 0.0
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0
        self._arrived: dict[tuple[str, str], float] = {}
        self._cut: dict[tuple[str, int, str], float] = {}
        self._speed: dict[tuple[str, str], float] = {}
        self._fatal: Kill | None = made.kill
        self._card = card_of(made.state, made.chunk)
        build = partial(Operator, made.rule)
        self._build = build
        self.processes: dict[str, Process] = {}
        for name in HOSTS:
            state = made.state if name == "h0" else None
            self._add(name, Host(name, COORDINATOR, build, made.limits, state=state))
        begun = CoordinatorJournal("h0")
        self._add(COORDINATOR, Coordinator(COORDINATOR, begun, made.state, made.limits)).journal = begun
        for stream in made.rule.streams:
            self._add(stream, Upstream(stream, "h0", COORDINATOR, made.limits))
        for sink in made.sinks:
            self._add(sink, Downstream(sink, "h0", COORDINATOR))

    def run(self) -> Outcome:
        first = self.processes["h0"]
        assert isinstance(first.machine, Host)
        first.state = self.world.state
        self._carry_out(first, first.machine.own(self._card, self.world.rule.streams, self.world.sinks))
        for stream, payloads in self.world.inputs.items():
            t, pace = 0.0, self._random.uniform(0.2, 2.0)
            for payload in payloads:
                t += self._random.expovariate(1 / pace)
                self._at(t, partial(self._emit, stream, payload))
        if self.world.migrations:
            self._at(self._random.uniform(0, 60), self._order)
        for host in HOSTS:
            t = self._random.uniform(0, 0.5)
            while t < END:
                self._at(t, partial(self._tick, host))
                t += 0.5
        while self._events:
            self._now, _, event = heapq.heappop(self._events)
            event()
        owners = [
            process.name
            for process in self.processes.values()
            if isinstance(process.machine, Host) and process.alive and process.machine.is_owner
        ]
        self.outcome.owners = tuple(owners)
        coordinator = self.processes[COORDINATOR]
        assert isinstance(coordinator.machine, Coordinator)
        self.outcome.open_phase = coordinator.machine.journal.phase if coordinator.alive else Phase.IDLE
        ups = (each.machine for each in self.processes.values())
        self.outcome.kept = sum(len(up.kept) for up in ups if isinstance(up, Upstream))
        return self.outcome

    # What happens.

    def _emit(self, stream: str, payload: bytes) -> None:
        process = self.processes[stream]
        assert isinstance(process.machine, Upstream)
        self._carry_out(process, process.machine.emit(payload))

    def _tick(self, host: str) -> None:
        process = self.processes[host]
        assert isinstance(process.machine, Host)
        if process.alive:
            self._step(process, process.machine.tick(self._now))

    def _order(self) -> None:
        """Orders the next migration, or waits until the last one has ended."""
        process = self.processes[COORDINATOR]
        machine = process.machine
        assert isinstance(machine, Coordinator)
        journal = machine.journal
        if not process.alive or journal.phase is not Phase.IDLE or not self._runs(journal.owner):
            if self._now < END - 100:
                self._at(self._now + 5, self._order)
            return
        if journal.last >= self.world.migrations:
            return
        targets = [host for host in HOSTS if host != journal.owner and self.processes[host].alive]
        if not targets:
            return
        span = self._random.uniform(0.1, 1) if self.world.late else self._random.uniform(10, 60)
        order = Order(
            machine.next_number,
            journal.owner,
            self._random.choice(targets),
            self._card,
            self.world.rule.streams,
            self.world.sinks,
            self._now + span if self._random.random() < 0.7 else float("inf"),
            self._random.choice((Method.LIVE, Method.LIVE, Method.STOP_AND_COPY)),
            begin_at=self._now + self._random.choice((0.0, 0.0, self._random.uniform(0, 10))),
            bandwidth=self._random.uniform(50, 5000),
            give_up_at=self._now + 60 if self._random.random() < 0.2 else float("inf"),
        )
        self._step(process, machine.migrate(order))
        self._at(self._now + self._random.uniform(1, 40), self._order)

    def _runs(self, host: str) -> bool:
        process = self.processes.get(host)
        return process is not None and process.alive

    def _arrive(self, sender: str, boot: int, to: str, to_boot: int, message: Message) -> None:
        origin, process = self.processes[sender], self.processes[to]
        if not process.alive or process.boot != to_boot:
            return
        if (origin.boot != boot or not origin.alive) and self._now > self._cut.get((sender, boot, to), 0.0):
            return
        self.outcome.messages += 1
        machine = process.machine
        if isinstance(machine, Host):
            effects = machine.receive(sender, message, self._now)
        else:
            effects = machine.receive(sender, message)
        self._step(process, effects)

    # How a kill happens.

    def _step(self, process: Process, effects: Sequence[Effect]) -> None:
        if self._dies(process, effects):
            assert self._fatal is not None
            kill, self._fatal = self._fatal, None
            self._carry_out(process, effects[: self._random.randint(0, len(effects))])
            self._kill(process, kill)
        else:
            self._carry_out(process, effects)

    def _dies(self, process: Process, effects: Sequence[Effect]) -> bool:
        """Whether this is the step in which the kill of this world happens."""
        coordinator = self.processes[COORDINATOR].machine
        assert isinstance(coordinator, Coordinator)
        order = coordinator.journal.order
        if order is None or not effects:
            return False
        parts = {order.source: "source", order.target: "target", COORDINATOR: "coordinator"}
        victim = parts.get(process.name)
        if victim is None:
            return False
        # For good only while both could go on: before and after there is only one host that can.
        ends = (self.processes[order.source].journal, self.processes[order.target].journal)
        both = all(isinstance(end, Journal) and end.order and end.safe for end in ends)
        hosts = (self.processes[order.source].machine, self.processes[order.target].machine)
        both &= not any(isinstance(host, Host) and host.releasing for host in hosts)
        for for_good in (False, True)[: 1 + (both and coordinator.journal.phase is Phase.ORDERED)]:
            self.outcome.steps[victim, order.migration, for_good] += 1
        kill = self._fatal
        if kill is None:
            return False
        for_good = kill.victim != "coordinator" and kill.mourned
        here = kill.victim == victim and kill.migration == order.migration and (both or not for_good)
        return here and self.outcome.steps[victim, order.migration, for_good] == kill.at

    def _kill(self, process: Process, kill: Kill) -> None:
        self.outcome.killed = True
        process.alive = False
        for (sender, to), last in self._arrived.items():
            if sender == process.name:
                span = max(0.0, last - self._now)
                self._cut[sender, process.boot, to] = self._now + self._random.uniform(0, 1.2) * span
        if kill.mourned:
            self._at(self._now + self._random.uniform(0.1, 20), partial(self._mourn, process.name))
        if kill.back is not None:
            self._at(self._now + kill.back, partial(self._come_back, process))

    def _mourn(self, name: str) -> None:
        coordinator = self.processes[COORDINATOR]
        assert isinstance(coordinator.machine, Coordinator)
        self._step(coordinator, coordinator.machine.gone(name))

    def _come_back(self, process: Process) -> None:
        process.alive, process.boot = True, process.boot + 1
        machine: Host | Coordinator
        if isinstance(process.journal, CoordinatorJournal):
            machine = Coordinator(process.name, process.journal, self.world.state, self.world.limits)
        else:
            journal = process.journal or Journal()
            assert isinstance(journal, Journal)
            state = process.state if journal.stored else None
            machine = Host(process.name, COORDINATOR, self._build, self.world.limits, journal, state)
        process.machine = machine
        effects = machine.restart(self._now) if isinstance(machine, Host) else machine.restart()
        self._carry_out(process, effects)

    # How effects are carried out.

    def _carry_out(self, process: Process, effects: Sequence[Effect]) -> None:
        for effect in effects:
            match effect:
                case Sent(to, message):
                    self._send(process, to, message)
                case Keep(journal):
                    process.journal = journal
                case Store(data):
                    process.state = data
                case Deliver(_, payloads):
                    delivered = self.outcome.delivered[process.name]
                    delivered.extend(payloads)
                case Note():
                    self.outcome.notes.append(effect)

    def _send(self, process: Process, to: str, message: Message) -> None:
        pair = process.name, to
        if pair not in self._speed:
            self._speed[pair] = self._random.choice((0.02, 0.2, 1.0))
        delay = self._random.expovariate(1 / self._speed[pair])
        if self._random.random() < 0.01:
            delay += self._random.uniform(0, 15)
        at = max(self._arrived.get(pair, 0.0), self._now + delay)
        self._arrived[pair] = at
        receiver = self.processes[to]
        self._at(at, partial(self._arrive, process.name, process.boot, to, receiver.boot, message))

    def _at(self, t: float, event: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._events, (t, self._count, event))

    def _add(self, name: str, machine: Host | Coordinator | Upstream | Downstream) -> Process:
        self.processes[name] = Process(name, machine)
        return self.processes[name]
