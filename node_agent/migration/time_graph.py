"""The time graph: what an operator may do from step to step (Alg. 4.2).

A vertex is a broker that runs the operator during a step. An edge leads to the same broker one step later,
or to another one as many steps later as copying takes; the old host works on meanwhile and its cost counts.
Vertices that break a latency limit are left out, unless a step would have none.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from node_agent.migration.costs import Costs, costs, moving_cost
from node_agent.migration.situation import Situation

NEVER = -1


@dataclass(frozen=True)
class TimeGraph:
    """Targets and steps are numbered.

    ``vertices[k]``: those of step k. ``forced[k]``: of these, the ones that can only be stayed at.
    ``until[k][i]``: the cost of target i in all steps before k. ``since[k][i]``: from which step on target i
    has vertices up to step k - 1. ``moving[p][i]``: the cost of a migration. ``begins[kind[p][i]][k]``: the
    step in which a migration must begin that is to end at step k.
    """

    situation: Situation
    targets: tuple[str, ...]
    start: int
    costs: Costs
    vertices: list[list[int]]
    forced: list[frozenset[int]]
    until: list[list[float]]
    since: list[list[int]]
    moving: list[list[float]]
    kind: list[list[int]]
    begins: list[list[int]]

    def edges_into(self, k: int, i: int) -> Iterator[tuple[int, int, float]]:
        """Step and target where each edge begins, and its weight."""
        if self.since[k][i] < k:
            yield k - 1, i, self.costs.placing[k - 1][i]
        if i in self.forced[k]:
            return
        for p in range(len(self.targets)):
            begin = self.begins[self.kind[p][i]][k]
            if p != i and begin != NEVER and self.since[k][p] <= begin:
                yield begin, p, self.moving[p][i] + self.until[k][p] - self.until[begin][p]

    def size(self) -> int:
        """How many vertices there are."""
        return sum(map(len, self.vertices))


def time_graph(situation: Situation) -> TimeGraph:
    targets = situation.targets()
    start = targets.index(situation.host)
    found = costs(situation)
    count, steps = len(targets), situation.world.steps
    until = [[0.0] * count]
    for row in found.placing:
        until.append([a + b for a, b in zip(until[-1], row, strict=True)])
    kind, begins = _durations(situation, targets)
    moving = [[moving_cost(situation, a, b) for b in targets] for a in targets]
    graph = TimeGraph(
        situation, targets, start, found, [[start]], [frozenset()], until, [[0] * count], moving, kind, begins
    )
    room = situation.may_run()
    used = frozenset() if situation.reserved is None else frozenset(situation.reserved.brokers())
    reached = [{start}]
    for k in range(1, len(steps.times)):
        graph.since.append(_since(graph, k))
        allowed = [i for i in range(count) if targets[i] in room[k]]
        vertices = [i for i in allowed if not found.broken[k][i]]
        if not vertices:
            vertices = [i for i in allowed if found.some[k][i] or targets[i] in used]
        graph.vertices.append(vertices)
        graph.forced.append(frozenset())
        here = {i for i in vertices if _is_reached(graph, reached, k, i)}
        if not here:
            here = reached[k - 1]
            graph.forced[k] = frozenset(here)
            graph.vertices[k] = sorted({*vertices, *here})
        reached.append(set(here))
    return graph


def _is_reached(graph: TimeGraph, reached: list[set[int]], k: int, i: int) -> bool:
    return any(p in reached[j] for j, p, _ in graph.edges_into(k, i))


def _since(graph: TimeGraph, k: int) -> list[int]:
    """``k`` for targets without a vertex at step k - 1."""
    before, last = graph.since[k - 1], set(graph.vertices[k - 1])
    return [before[i] if i in last else k for i in range(len(graph.targets))]


def _durations(situation: Situation, targets: tuple[str, ...]) -> tuple[list[list[int]], list[list[int]]]:
    """Which kind of duration a migration has, and for each kind, when it begins by when it ends."""
    net, times = situation.world.network, situation.world.steps.times
    kinds: dict[float, int] = {}
    kind = []
    for a in targets:
        row = net.bandwidth[net.number[a]]
        seconds = [situation.operator.state / row[net.number[b]] for b in targets]
        kind.append([kinds.setdefault(each, len(kinds)) for each in seconds])
    begins = []
    for each in kinds:
        column, begin = [], NEVER
        for k, t in enumerate(times):
            while begin + 1 < k and times[begin + 1] <= t - each + 1e-9:
                begin += 1
            column.append(begin)
        begins.append(column)
    return kind, begins
