"""Delivery cores on a network in memory that loses, repeats, reorders, splits and crashes, all by seed.

A connection between two replicas keeps its messages in order until it breaks. Then what is under way may or
may not arrive, possibly after what a newer connection carries, and the sender hears of it some time later.
Inner replicas lose all they know when they crash. Sources and sinks live.
"""

import heapq
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import inf
from random import Random

from node_agent.apps.dataflow.delivery.core import DeliveryCore
from node_agent.apps.dataflow.delivery.effects import (
    Acknowledge,
    Ask,
    Drop,
    Effect,
    Forward,
    Process,
    ProcessUnit,
    PushBack,
    Resume,
    Send,
    Settle,
)
from node_agent.apps.dataflow.delivery.emission import Payloads
from node_agent.apps.dataflow.delivery.limits import DeliveryLimits, Reliability
from node_agent.apps.dataflow.delivery.plan_neighbours import PlanNeighbours
from node_agent.apps.dataflow.delivery.spill import Spill
from node_agent.apps.dataflow.model.tuples import StreamTuple
from node_agent.apps.dataflow.model.units import CountWindow, SameTau, TimeWindow
from node_agent.apps.dataflow.switching.route import Hop
from node_agent.apps.dataflow.windows.assembly import Assembler
from node_agent.apps.dataflow.windows.units import Unit
from node_agent.apps.dataflow.windows.window_rules import CountAssembler, TauAssembler, TimeAssembler
from node_agent.apps.dataflow.windows.windows import WindowAssembler

MILLISECOND = 1_000_000
EPOCH_NS = 10**9


Kind = str | CountWindow | TimeWindow | SameTau


@dataclass(frozen=True)
class Step:
    """One operator: ``kind`` is source, sink, map, filter, flat_map, or the rule of a window or join."""

    kind: Kind
    after: tuple[str, ...] = ()

    @property
    def whole(self) -> bool:
        return not isinstance(self.kind, str)


Graph = Mapping[str, Step]


@dataclass(frozen=True)
class Faults:
    """How many of each, over ``seconds``; ``steer``: mean pause between two changes of a route."""

    crashes: int = 0
    breaks: int = 0
    partitions: int = 0
    steer: float = inf
    seconds: float = 30.0


@dataclass
class Connection:
    epoch: int = 0
    broken: bool = False
    busy_until: dict[str, float] = field(default_factory=dict)


class Node:
    """A replica: its core, and an operator that takes its time."""

    def __init__(self, core: DeliveryCore, boot: int) -> None:
        self.core = core
        self.boot = boot
        self.alive = True
        self.work: list[Process | ProcessUnit] = []
        self.busy = False
        self.tick_at = inf


class Network:
    def __init__(
        self,
        graph: Graph,
        replicas: int,
        count: int,
        seed: int,
        level: Reliability = Reliability.EXACTLY_ONCE,
        limits: DeliveryLimits | None = None,
        faults: Faults | None = None,
        slow_source: bool = True,
        make_spill: Callable[[], Spill] | None = None,
    ) -> None:
        self.graph = graph
        self.level = level
        self.limits = limits or DeliveryLimits()
        self.now = 0.0
        self.delivered: Counter[tuple[str, str, int]] = Counter()
        self.results: dict[tuple[str, str, int], Payloads] = {}
        self.drops: dict[tuple[str, int], str] = {}
        self.crashed_with: set[tuple[str, int]] = set()
        self.filtered: set[tuple[str, int]] = set()
        self.members: dict[tuple[str, int], set[tuple[str, int]]] = {}
        self.emitted: list[tuple[str, int]] = []
        self.messages: Counter[str] = Counter()
        self.most_intervals = 0
        self.most_retained = 0
        self.most_retained_in_memory = 0
        self._random = Random(seed)
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._sequence = 0
        self._connections: dict[tuple[str, str], Connection] = {}
        self._separated: frozenset[str] = frozenset()
        self._slow_source = slow_source
        self._make_spill = make_spill
        self.origins: dict[str, tuple[str, ...]] = {}
        for name, step in graph.items():
            if step.kind == "source":
                self.origins[name] = (f"{name}/0",)
            elif step.whole:
                self.origins[name] = (name,)
            else:
                self.origins[name] = tuple(o for up in step.after for o in self.origins[up])
        self.replicas = {
            name: tuple(f"{name}/{i}" for i in range(1 if step.kind in ("source", "sink") else replicas))
            for name, step in graph.items()
        }
        self.nodes = {r: Node(self._core(r), 0) for group in self.replicas.values() for r in group}
        self.faults = faults or Faults()
        self._steer_all(calm=self.faults.steer == inf)
        self._sources(count)
        self._plan_faults(self.faults)

    # Building.

    def _core(self, replica: str) -> DeliveryCore:
        name = operator_of(replica)
        step = self.graph[name]
        neighbours = PlanNeighbours(
            replica,
            {up: self.replicas[up] for up in step.after},
            {down: other.whole for down, other in self.graph.items() if name in other.after},
        )
        spill = self._make_spill() if self._make_spill is not None else None
        return DeliveryCore(neighbours, self.level, self.limits, self._assembler(name, step), spill)

    def _assembler(self, name: str, step: Step) -> Assembler | None:
        streams = tuple((up, origin) for up in step.after for origin in self.origins[up])
        match step.kind:
            case CountWindow() as window:
                return CountAssembler(name, streams, window)
            case TimeWindow() as span:
                return TimeAssembler(name, streams, span)
            case SameTau():
                return TauAssembler(name, streams)
        return None

    def _sources(self, count: int) -> None:
        for name, step in self.graph.items():
            if step.kind == "source":
                pause = self.faults.seconds / (count + 1)
                self._later(self._random.random() * pause, self._emitter(f"{name}/0", count, pause))

    def _emitter(self, replica: str, count: int, pause: float) -> Callable[[], None]:
        emitted = 0

        def emit() -> None:
            nonlocal emitted
            core = self.nodes[replica].core
            if core.full and self._slow_source:
                self._later(pause, emit)
                return
            if emitted == count:
                self._do(replica, core.end(self.now))
                return
            batch = []
            for _ in range(min(self._random.choice((1, 1, 2, 5)), count - emitted)):
                emitted += 1
                # Capture times come from the numbers, so that windows do not depend on the schedule.
                born_ns = EPOCH_NS + emitted * 7 * MILLISECOND + (emitted % 3) * MILLISECOND
                batch.append(((f"{replica}:{emitted}".encode(),), born_ns))
                self.emitted.append((replica, emitted))
            self._do(replica, core.emit(batch, self.now))
            self._later(pause * len(batch), emit)

        return emit

    def _plan_faults(self, faults: Faults) -> None:
        inner = [r for name, group in self.replicas.items() for r in group if self._inner(name)]
        for _ in range(faults.crashes if inner else 0):
            self._later(self._random.uniform(0, faults.seconds), self._crash(self._random.choice(inner)))
        for _ in range(faults.breaks):
            self._later(self._random.uniform(0, faults.seconds), self._break_any)
        for _ in range(faults.partitions):
            self._later(self._random.uniform(0, faults.seconds), self._partition)
        if faults.steer < inf:
            for replica in self.nodes:
                self._later(self._random.expovariate(1 / faults.steer), self._wanderer(replica))
        self._later(faults.seconds, self._calm)

    def _inner(self, name: str) -> bool:
        return self.graph[name].kind not in ("source", "sink")

    # Running.

    def run(self, limit: float = 600.0) -> None:
        """Until nothing is left to happen; raises if that does not come."""
        while self._events:
            self.now, _, event = heapq.heappop(self._events)
            if self.now > limit:
                raise AssertionError(f"no rest after {limit} s: {self.unfinished()}")
            event()

    def unfinished(self) -> list[str]:
        return [
            f"{replica}: retains {node.core.retained}, holds {node.core.holding}"
            for replica, node in self.nodes.items()
            if node.core.retained or node.core.holding
        ]

    def unaccounted(self) -> list[tuple[str, int]]:
        """Emitted tuples of which nobody can say what became of them."""
        known = {(origin, tau) for _, origin, tau in self.delivered}
        known |= self.drops.keys() | self.crashed_with | self.filtered
        for node in self.nodes.values():
            known |= kept_by(node)
        for unit in reversed(self.members):
            if unit in known:
                known |= self.members[unit]
        return [item for item in self.emitted if item not in known]

    def _later(self, delay: float, event: Callable[[], None]) -> None:
        self._at(self.now + delay, event)

    def _at(self, time: float, event: Callable[[], None]) -> None:
        self._sequence += 1
        heapq.heappush(self._events, (time, self._sequence, event))

    # Faults.

    def _crash(self, replica: str) -> Callable[[], None]:
        def crash() -> None:
            node = self.nodes[replica]
            if not node.alive:
                return
            node.alive = False
            self.crashed_with |= kept_by(node)
            for pair in self._connections:
                if replica in pair:
                    self._break(pair)
            self._later(self._random.uniform(0.01, 5), lambda: self._restart(replica))

        return crash

    def _restart(self, replica: str) -> None:
        node = self.nodes[replica]
        if not node.alive:
            self.nodes[replica] = Node(self._core(replica), node.boot + 1)
            for (sender, _), connection in self._connections.items():
                if sender == replica:
                    connection.broken = False
            self._steer(replica, calm=self.now >= self.faults.seconds)

    def _break_any(self) -> None:
        if self._connections:
            self._break(self._random.choice(list(self._connections)))

    def _partition(self) -> None:
        self._separated = frozenset(r for r in self.nodes if self._random.random() < 0.4)
        for pair in self._connections:
            if not self._reaches(*pair):
                self._break(pair)
        self._later(self._random.uniform(0.1, 6), self._heal)

    def _heal(self) -> None:
        self._separated = frozenset()

    def _wanderer(self, replica: str) -> Callable[[], None]:
        def wander() -> None:
            if self.now < self.faults.seconds:
                if self.nodes[replica].alive:
                    self._steer(replica, calm=False)
                self._later(self._random.expovariate(1 / self.faults.steer), wander)

        return wander

    def _calm(self) -> None:
        self._heal()
        for replica in self.nodes:
            self._restart(replica)
        self._steer_all(calm=True)

    def _steer_all(self, calm: bool) -> None:
        for replica in self.nodes:
            self._steer(replica, calm)

    def _steer(self, replica: str, calm: bool) -> None:
        core = self.nodes[replica].core
        for downstream, whole in core.neighbours.downstreams.items():
            hop: Hop | None = Hop(self.replicas[downstream][-1], 1.0)
            if not calm:
                choices = self.replicas[downstream]
                hop = Hop(self._random.choice(choices), 1.0)
                if self._random.random() < 0.2:
                    hop = None
                elif not whole and len(choices) > 1 and self._random.random() < 0.3:
                    hop = Hop(choices[0], 1.0, tuple((c, 1 / len(choices)) for c in choices))
            self._do(replica, core.steer(downstream, hop, self.now))
        step = self.graph[operator_of(replica)]
        if step.whole and not calm and self._random.random() < 0.3:
            sibling = self._random.choice(self.replicas[operator_of(replica)])
            if sibling != replica:
                self._do(replica, core.hand_over(sibling))

    # Messages.

    def _reaches(self, a: str, b: str) -> bool:
        return (
            (a in self._separated) == (b in self._separated) and self.nodes[a].alive and self.nodes[b].alive
        )

    def _break(self, pair: tuple[str, str]) -> None:
        connection = self._connections[pair]
        if connection.broken:
            return
        connection.broken = True
        connection.epoch += 1
        sender, receiver = pair
        boot = self.nodes[sender].boot

        def noticed() -> None:
            node = self.nodes[sender]
            if node.boot != boot:
                return
            connection.broken = False
            if node.alive and operator_of(receiver) in node.core.neighbours.downstreams:
                self._do(sender, node.core.connection_failed(operator_of(receiver), receiver, self.now))

        self._later(self._random.uniform(0.01, 1.0), noticed)

    def _post(
        self, pair: tuple[str, str], to: str, kind: str, arrive: Callable[[DeliveryCore], list[Effect]]
    ) -> None:
        """Send over the connection of ``pair`` (upstream, downstream replica), in either direction."""
        self.messages[kind] += 1
        connection = self._connections.setdefault(pair, Connection())
        if connection.broken:
            return
        if not self._reaches(*pair):
            self._break(pair)
            return
        epoch, boot = connection.epoch, self.nodes[to].boot
        luck = self._random.random() < 0.5
        at = max(connection.busy_until.get(to, 0.0), self.now + self._random.choice((0.001, 0.02, 0.3)))
        connection.busy_until[to] = at

        def deliver() -> None:
            node = self.nodes[to]
            if node.alive and node.boot == boot and (connection.epoch == epoch or luck):
                self._do(to, arrive(node.core))

        self._at(at, deliver)

    # What cores want done.

    def _do(self, replica: str, effects: list[Effect]) -> None:
        node = self.nodes[replica]
        for effect in effects:
            match effect:
                case Process() | ProcessUnit():
                    node.work.append(effect)
                case PushBack() | Resume():
                    pass  # a source here looks for itself
                case Drop(_, item, reason):
                    self.drops[item.origin, item.tau] = reason
                case _:
                    self._transmit(replica, effect)
        if self._sequence % 8 == 0:
            self._measure(node.core)
        self._work(replica, node)
        self._wind(replica, node)

    def _transmit(self, replica: str, effect: Effect) -> None:
        name = operator_of(replica)
        match effect:
            case Send(_, to, items, floors):
                batch, known = tuple(items), dict(floors)
                self._post(
                    (replica, to),
                    to,
                    "items",
                    lambda core: core.receive(replica, name, batch, known, self.now),
                )
            case Acknowledge(to, done, taken):
                self._post(
                    (to, replica),
                    to,
                    "acks",
                    lambda core: core.acknowledged(replica, name, done, taken, self.now),
                )
            case Ask(to):
                self._post((to, replica), to, "asks", lambda core: core.asked(replica, name, self.now))
            case Settle(_, to, floors, ends):
                facts = dict(floors)
                self._post(
                    (replica, to), to, "settles", lambda core: core.settled(name, facts, ends, self.now)
                )
            case Forward(sibling, sender, upstream, items):
                batch = tuple(items)
                self._post(
                    (replica, sibling),
                    sibling,
                    "forwards",
                    lambda core: core.receive(sender, upstream, batch, {}, self.now),
                )

    def _wind(self, replica: str, node: Node) -> None:
        at = node.core.next_tick(self.now)
        if at < node.tick_at:
            node.tick_at = at

            def tick() -> None:
                if node.alive and node is self.nodes[replica] and node.tick_at == at:
                    node.tick_at = inf
                    self._do(replica, node.core.tick(self.now))

            self._at(max(self.now, at), tick)

    def _work(self, replica: str, node: Node) -> None:
        if node.busy or not node.work:
            return
        node.busy = True

        def finish() -> None:
            if not node.alive or node is not self.nodes[replica]:
                return
            node.busy = False
            effect = node.work.pop(0)
            if isinstance(effect, ProcessUnit):
                payloads = self._compute_unit(effect.unit)
                self._do(replica, node.core.processed(effect.unit, payloads, self.now))
            else:
                results = [self._compute(replica, item) for item in effect.items]
                if self._inner(operator_of(replica)):
                    self.filtered |= {
                        (item.origin, item.tau)
                        for item, result in zip(effect.items, results, strict=True)
                        if not result
                    }
                self._do(replica, node.core.processed_each(effect.upstream, effect.items, results, self.now))

        self._later(self._random.choice((0.0, 0.001, 0.05)), finish)

    def _compute(self, replica: str, item: StreamTuple) -> Payloads:
        name = operator_of(replica)
        match self.graph[name].kind:
            case "sink":
                key = (name, item.origin, item.tau)
                self.delivered[key] += 1
                assert self.results.setdefault(key, item.payloads) == item.payloads, f"{key} has two values"
                return ()
            case "filter":
                return item.payloads if item.tau % 3 else ()
            case "flat_map":
                return tuple(p + suffix for p in item.payloads for suffix in (b"<", b">"))
        return tuple(p + b"." for p in item.payloads)

    def _compute_unit(self, unit: Unit) -> Payloads:
        members = self.members.setdefault((unit.origin, unit.tau), set())
        members |= {(item.origin, item.tau) for items in unit.inputs.values() for item in items}
        parts = [
            up.encode() + b"=" + b"+".join(p for item in items for p in item.payloads)
            for up, items in unit.inputs.items()
        ]
        return (b"[" + b" ".join(parts) + b"]",)

    def _measure(self, core: DeliveryCore) -> None:
        self.most_retained = max(self.most_retained, core.retained)
        in_memory = max((s.items for r in core._retentions.values() for s in r._stores.values()), default=0)
        self.most_retained_in_memory = max(self.most_retained_in_memory, in_memory)
        self.most_intervals = max(self.most_intervals, core.intervals)


def operator_of(replica: str) -> str:
    return replica.rpartition("/")[0]


def kept_by(node: Node) -> set[tuple[str, int]]:
    """What goes with a replica that crashes, where nobody else keeps it."""
    items = [i for r in node.core._retentions.values() for parcel in r.parcels() for i in parcel.items]
    for effect in node.work:
        units = [effect.unit.inputs] if isinstance(effect, ProcessUnit) else [{effect.upstream: effect.items}]
        items += [item for inputs in units for group in inputs.values() for item in group]
    items += [item for inbox in node.core._inboxes.values() for item in inbox.backlog.values()]
    if isinstance(node.core._assembler, WindowAssembler):
        items += [item for stream in node.core._assembler._streams.values() for item in stream.held.values()]
    return {(item.origin, item.tau) for item in items}
