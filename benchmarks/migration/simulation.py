"""Operators in a tree of brokers, second by second: what streams and copied state cost.

A *scene* is a graph of operators between mobiles. Its operators stay (``static``), move greedily or follow
plans; the latter are made by the planners of ``node_agent/migration``, whose messages take no time here.
Costs are bytes × seconds of latency.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf

from benchmarks.migration.mobiles import Ends, Mobile
from benchmarks.migration.topologies import Tree
from node_agent.migration.situation import Neighbour, Operator

MEASURED_S = 5
"""Rates are measured over the last seconds, as brokers would."""


@dataclass(frozen=True)
class Part:
    """An operator. ``rate``: bytes a second that it sends to each of ``to``."""

    name: str
    state: float
    rate: float
    to: tuple[str, ...]


@dataclass(frozen=True)
class Scene:
    """``limits``: by stream, seconds that operators let it take. ``hosts``: where they are at first."""

    tree: Tree
    sources: tuple[tuple[Mobile, tuple[str, ...]], ...]
    """With the operators that each sends to."""
    parts: tuple[Part, ...]
    consumer: Mobile
    hosts: Mapping[str, str]
    seconds: int
    seed: int = 1
    limits: Mapping[tuple[str, str], float] = field(default_factory=dict)
    asked: float = inf
    """Seconds that a path may take, whether operators know of it or not."""

    def mobiles(self) -> list[Mobile]:
        return [*(each for each, _ in self.sources), self.consumer]

    def streams(self) -> list[tuple[str, str]]:
        found = [(each.name, to) for each, tos in self.sources for to in tos]
        return found + [(each.name, to) for each in self.parts for to in each.to]

    def paths(self) -> list[list[tuple[str, str]]]:
        """From each source to the consumer."""
        streams = self.streams()

        def onward(name: str) -> list[list[tuple[str, str]]]:
            if name == self.consumer.name:
                return [[]]
            return [[(a, b), *rest] for a, b in streams if a == name for rest in onward(b)]

        return [path for each, _ in self.sources for path in onward(each.name)]


@dataclass
class Measured:
    """``cost``: of streams and copies together, ``copying``: of the latter alone, both in bytes × seconds.
    ``wasted``: of copies that were not used. ``late_s``: seconds that migrations came too late;
    ``stopped_s``: seconds that operators stood still."""

    cost: float = 0.0
    copying: float = 0.0
    wasted: float = 0.0
    migrations: int = 0
    stopped_s: float = 0.0
    late_s: int = 0
    latency: float = 0.0
    """Sum over paths and seconds."""
    path_seconds: int = 0
    too_late: int = 0
    """Paths and seconds beyond their limit."""
    messages: int = 0
    coordinations: int = 0
    vertices: int = 0

    def add(self, other: "Measured") -> None:
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)


class Simulation:
    """Knows the scene; ``play`` lets a mover decide where operators are."""

    def __init__(self, scene: Scene) -> None:
        self.scene, self.net = scene, scene.tree.network
        self.hosts = dict(scene.hosts)
        self.parts = {each.name: each for each in scene.parts}
        self.found = Measured()
        self.now: dict[str, Ends] = {}
        self.measured: dict[str, Ends] = {}
        self._streams = scene.streams()
        self._paths = scene.paths()
        self._recent: dict[str, deque[float]] = {
            each.name: deque(maxlen=MEASURED_S) for each in scene.mobiles()
        }

    def play(self, mover: "Mover") -> Measured:
        for t in range(self.scene.seconds):
            for mobile in self.scene.mobiles():
                ends = mobile.ends(t)
                self.now[mobile.name] = ends
                whole, recent = sum(rate for _, rate in ends), self._recent[mobile.name]
                mean = sum(recent) / len(recent) if recent else whole
                share = mean / whole if whole else 0.0
                self.measured[mobile.name] = [(leaf, rate * share) for leaf, rate in ends]
                recent.append(whole)
            mover.second(t)
            self._account()
        return self.found

    def ends(self, name: str) -> Ends:
        if name in self.parts:
            return [(self.hosts[name], self.parts[name].rate)]
        return self.now[name]

    def copy(self, name: str, amount: float, target: str) -> float:
        cost = amount * self.net.between(self.hosts[name], target)
        self.found.cost += cost
        self.found.copying += cost
        return cost

    def flow(self, name: str, host: str) -> float:
        """What the streams of an operator would cost a second at a broker, by measured rates."""
        total = 0.0
        for a, b in self._streams:
            if b == name:
                ends = self.measured.get(a) or self.ends(a)
                total += sum(rate * self.net.between(leaf, host) for leaf, rate in ends)
            elif a == name:
                others = self.ends(b)
                total += self.parts[name].rate * max(self.net.between(host, leaf) for leaf, _ in others)
        return total

    def _account(self) -> None:
        delays = {}
        for a, b in self._streams:
            (there, _), *_ = self.ends(b)
            ends = [(self.net.between(leaf, there), rate) for leaf, rate in self.ends(a)]
            self.found.cost += sum(delay * rate for delay, rate in ends)
            delays[a, b] = max(delay for delay, _ in ends)
        for path in self._paths:
            delay = sum(delays[each] for each in path)
            self.found.latency += delay
            self.found.path_seconds += 1
            self.found.too_late += delay > self.scene.asked + 1e-9


class Mover:
    """Static: operators stay where they are."""

    def __init__(self, simulation: Simulation) -> None:
        self.simulation = simulation

    def second(self, t: int) -> None:
        """Called once a second, before costs are counted."""


def neighbours(scene: Scene, name: str) -> tuple[Neighbour, ...]:
    parts = {each.name for each in scene.parts}
    found = []
    for stream in scene.streams():
        a, b = stream
        if name in stream:
            other, limit = (a if b == name else b), scene.limits.get(stream, inf)
            found.append(Neighbour(other, b == name, limit, other in parts))
    return tuple(found)


def operator_of(scene: Scene, name: str) -> Operator:
    (part,) = (each for each in scene.parts if each.name == name)
    return Operator(name, part.state, part.rate, neighbours(scene, name))
