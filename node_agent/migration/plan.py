"""Plans: at which broker an operator or a mobile is expected, step by step.

A plan is a Markov chain. Each step has one or more expected placements; where there is one each, as in plans
of operators, the plan is *certain*. Times are absolute, in seconds.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

TOLERANCE = 1e-9
"""Two costs are the same if they differ by no more than this share."""


class MigrationError(ValueError):
    """A plan or an estimate that cannot be."""


@dataclass(frozen=True, slots=True)
class Steps:
    """When the steps of a plan begin, and when the last one ends."""

    times: tuple[float, ...]
    end: float

    def __post_init__(self) -> None:
        bounds = (*self.times, self.end)
        if len(bounds) < 2 or any(b <= a for a, b in pairwise(bounds)):
            raise MigrationError("a plan needs at least one step, and each step must begin after the last")

    def seconds(self) -> tuple[float, ...]:
        bounds = (*self.times, self.end)
        return tuple(b - a for a, b in pairwise(bounds))

    def index(self, t: float) -> int:
        """The step that holds ``t``; the first or last one if none does."""
        return min(max(bisect_right(self.times, t) - 1, 0), len(self.times) - 1)


def even_steps(begin: float, seconds: float, count: int) -> Steps:
    times = tuple(begin + seconds * k for k in range(count))
    return Steps(times, begin + seconds * count)


@dataclass(frozen=True, slots=True)
class Expected:
    """One expected placement (Ho, BW, tim, TB in the thesis).

    ``hosts``: the broker; the sources of a range query are at several. ``rates``: bytes a second sent from
    each. ``copy_at``: when copying of immutable state begins, None if the host was the same before.
    ``buffers_from``: by input, the time of the first event that must be copied.
    """

    hosts: tuple[str, ...]
    rates: tuple[float, ...]
    copy_at: float | None = None
    buffers_from: tuple[tuple[str, float], ...] = ()

    @property
    def host(self) -> str:
        return self.hosts[0]


@dataclass(frozen=True, slots=True)
class Plan:
    """``stages``: by step, what may be. ``moves[k][i][j]``: how likely placement j of step k+1 follows
    placement i of step k."""

    steps: Steps
    stages: tuple[tuple[Expected, ...], ...]
    start: tuple[float, ...] = (1.0,)
    moves: tuple[tuple[tuple[float, ...], ...], ...] = ()

    def __post_init__(self) -> None:
        if len(self.stages) != len(self.steps.times) or not all(self.stages):
            raise MigrationError("a plan needs at least one expected placement for each step")
        if len(self.start) != len(self.stages[0]):
            raise MigrationError("a plan needs a probability for each placement of its first step")
        if not self.certain and len(self.moves) != len(self.stages) - 1:
            raise MigrationError("an uncertain plan needs probabilities from each step to the next")

    @property
    def certain(self) -> bool:
        return all(len(stage) == 1 for stage in self.stages)

    def hosts(self) -> tuple[str, ...]:
        """Of a certain plan, by step."""
        if not self.certain:
            raise MigrationError("an uncertain plan has several hosts for a step")
        return tuple(stage[0].host for stage in self.stages)

    def brokers(self) -> tuple[str, ...]:
        """All that occur, in order of their names."""
        return tuple(sorted({host for stage in self.stages for each in stage for host in each.hosts}))

    def hosts_during(self, t: float) -> frozenset[str]:
        """Where it may be at a time; before and after its steps, as in the first and last one."""
        return frozenset(host for each in self.stages[self.steps.index(t)] for host in each.hosts)

    def probabilities(self) -> tuple[tuple[float, ...], ...]:
        """By step, how likely each expected placement is."""
        if self.certain:
            return tuple((1.0,) for _ in self.stages)
        found = [self.start]
        for move in self.moves:
            before = found[-1]
            found.append(
                tuple(
                    sum(p * row[j] for p, row in zip(before, move, strict=True)) for j in range(len(move[0]))
                )
            )
        return tuple(found)

    def likely(self) -> "tuple[tuple[tuple[float, Expected], ...], ...]":
        """By step, the expected placements with their probabilities."""
        chances = self.probabilities()
        return tuple(tuple(zip(p, s, strict=True)) for p, s in zip(chances, self.stages, strict=True))


def certain_plan(steps: Steps, hosts: Sequence[str], rate: float) -> Plan:
    """A plan with one host a step, and nothing to copy."""
    return Plan(steps, tuple((Expected((host,), (rate,)),) for host in hosts))


Joint = Mapping[tuple[str, str], float]
"""How likely one broker is followed by another one."""


def chain(steps: Steps, start: Mapping[str, float], joints: Iterable[Joint], rate: float) -> Plan:
    """An uncertain plan of how likely brokers are at first, and are followed by others from step to step."""
    names = [tuple(sorted(start))]
    moves = []
    for joint in joints:
        after = tuple(sorted({b for _, b in joint}))
        rows = []
        for a in names[-1]:
            row = [joint.get((a, b), 0.0) for b in after]
            total = sum(row)
            rows.append(tuple(each / total if total else 1.0 / len(after) for each in row))
        moves.append(tuple(rows))
        names.append(after)
    stages = tuple(tuple(Expected((name,), (rate,)) for name in each) for each in names)
    return Plan(steps, stages, tuple(start[name] for name in names[0]), tuple(moves))
