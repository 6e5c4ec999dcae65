"""What an operator knows when it plans: brokers, latencies, its state and streams, and its neighbours' plans.

Costs are bytes times seconds of latency, the thesis' bandwidth-delay product over time.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import inf

from node_agent.migration.plan import MigrationError, Plan, Steps


@dataclass(frozen=True)
class Network:
    """``latency[i][j]``: seconds between brokers i and j; ``bandwidth[i][j]``: bytes a second for state."""

    brokers: tuple[str, ...]
    latency: tuple[tuple[float, ...], ...]
    bandwidth: tuple[tuple[float, ...], ...]
    number: Mapping[str, int] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "number", {name: i for i, name in enumerate(self.brokers)})
        if len(self.number) < len(self.brokers) or not self.brokers:
            raise MigrationError("a network needs brokers, each named once")
        for matrix in (self.latency, self.bandwidth):
            if [len(row) for row in matrix] != [len(self.brokers)] * len(self.brokers):
                raise MigrationError("a network needs a latency and a bandwidth for each pair of brokers")
        if not all(0 <= each < inf for row in self.latency for each in row):
            raise MigrationError("latencies are 0 or more, and finite")
        if not all(each > 0 for row in self.bandwidth for each in row):
            raise MigrationError("bandwidths are above 0")

    def between(self, one: str, other: str) -> float:
        return self.latency[self.number[one]][self.number[other]]


def network(
    brokers: tuple[str, ...],
    latency: Callable[[str, str], float],
    bandwidth: Callable[[str, str], float] = lambda one, other: inf,
) -> Network:
    return Network(
        brokers,
        tuple(tuple(latency(a, b) for b in brokers) for a in brokers),
        tuple(tuple(bandwidth(a, b) for b in brokers) for a in brokers),
    )


@dataclass(frozen=True, slots=True)
class Neighbour:
    """An operator, source or consumer at the other end of a stream.

    ``upstream``: it sends to us, as much as its plan says; else we send to it. ``limit``: seconds that the
    stream may take, see ``restrictions``. ``plans``: it plans itself; sources and consumers do not.
    """

    name: str
    upstream: bool
    limit: float = inf
    plans: bool = True


@dataclass(frozen=True, slots=True)
class Operator:
    """``state``: bytes to copy, immutable and on average mutable ones. ``rate``: bytes a second that it sends
    to each successor. ``windows``: by input, how many seconds of events it looks back. ``need``: how much of
    a broker's room it takes."""

    name: str
    state: float
    rate: float
    neighbours: tuple[Neighbour, ...]
    windows: tuple[tuple[str, float], ...] = ()
    need: float = 1.0


@dataclass(frozen=True, slots=True)
class World:
    """What is measured or estimated, and stays as it is while plans are coordinated.

    ``targets``: brokers that may run the operator; those nearby are enough. ``full``: brokers without room
    for it.
    """

    steps: Steps
    network: Network
    targets: tuple[str, ...]
    full: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Situation:
    """Everything a plan is made of.

    ``host``: where the operator runs now. ``reserved``: the plan that brokers have granted; ``refused``:
    brokers that granted nothing more.
    """

    operator: Operator
    host: str
    world: World
    plans: Mapping[str, Plan]
    reserved: Plan | None = None
    refused: frozenset[str] = frozenset()

    def targets(self) -> tuple[str, ...]:
        """Brokers to consider, in the network's order; the current host always is one."""
        wanted = {self.host, *self.world.targets}
        if self.reserved is not None:
            wanted.update(self.reserved.brokers())
        return tuple(name for name in self.world.network.brokers if name in wanted)

    def may_run(self) -> tuple[frozenset[str], ...]:
        """By step, brokers with room for the operator, as far as is known. Where the last plan has reserved a
        broker, there is room on it."""
        closed = self.refused | self.world.full
        open_ones = frozenset(name for name in self.targets() if name not in closed)
        if self.reserved is None:
            return (open_ones | {self.host},) * len(self.world.steps.times)
        return tuple(open_ones | self.reserved.hosts_during(t) for t in self.world.steps.times)
