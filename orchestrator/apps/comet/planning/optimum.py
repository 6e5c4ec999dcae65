"""The exact optimum on small trees: branch and bound, the oracle that heuristics are held against.

Costs of junctions add up and only delays tie them together. So each junction, from the leaves to the sink,
keeps its pairs of cost and delay that no other pair beats (its frontier). A partial plan of a junction is a
set of inputs obtained so far; it is extended by every group of inputs that can be pulled next. Partial plans
are cut off if they are too late, if they cannot become cheaper than the best plan known, or if another one
with the same inputs is at least as cheap and as early.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from typing import TypeVar

from orchestrator.apps.comet.planning.ced_tree import CedTree, Edge, Junction, short
from orchestrator.apps.comet.planning.conversion import SLACK, convert
from orchestrator.apps.comet.planning.estimator import Estimator, Plan, Steps, in_order, with_absences

T = TypeVar("T")

MOST_INPUTS = 12
"""Of a junction: the work grows as 3 to the power of them."""


@dataclass(frozen=True)
class Point:
    """A way to run a junction and all below it."""

    cost: float
    delay: float
    steps: tuple[tuple[str, Steps], ...]


def optimum(estimator: Estimator, tree: CedTree) -> Plan | None:
    """The best plan over all sets of shorted junctions. None if nothing is fast enough."""
    best: Plan | None = None
    for nodes in _subsets(tree.inner):
        found = best_on_tree(estimator, short(tree, nodes), best)
        if found is not None and (best is None or found.cost < best.cost):
            best = found
    return best


def best_on_tree(
    estimator: Estimator, tree: CedTree, known: Plan | None = None, most_points: int | None = None
) -> Plan | None:
    """The best plan with these junctions. ``known``: a plan; only a cheaper one is looked for.

    ``most_points``: each junction keeps only so many pairs of cost and delay. The plan is then a good one, in
    a time that grows with the tree as the number of its junctions does.
    """
    start = convert(estimator, tree)
    if start is None:
        return None
    limit = min(start.cost, math.inf if known is None else known.cost)
    frontier = _frontier(estimator, tree.root, limit, most_points)
    best: Plan | None = start
    for point in frontier:
        for pulled in _subsets(tuple(edge.name for edge in tree.absent if edge.hops)):
            chosen = frozenset(pulled)
            if with_absences(estimator, tree, chosen, point.delay) > estimator.task.tolerance + SLACK:
                continue
            absent = sum(estimator.absent_cost(edge, edge.name in chosen) for edge in tree.absent)
            if best is None or point.cost + absent < best.cost:
                best = estimator.plan(tree, dict(point.steps), chosen)
    return best


def _frontier(estimator: Estimator, junction: Junction, limit: float, most_points: int | None) -> list[Point]:
    """The points of a junction and all below it, by increasing delay and decreasing cost."""
    if len(junction.inputs) > MOST_INPUTS:
        raise ValueError(f"{len(junction.inputs)} inputs at {junction.node}: an exact plan takes too long")
    below = [
        [Point(0.0, 0.0, ())] if edge.child is None else _frontier(estimator, edge.child, limit, most_points)
        for edge in junction.inputs
    ]
    edges = junction.inputs
    full = (1 << len(edges)) - 1
    events = {0: frozenset[str]()}
    for mask in range(1, full + 1):
        low = mask & -mask
        events[mask] = events[mask ^ low] | edges[low.bit_length() - 1].events
    labels: dict[int, list[tuple[Point, Steps]]] = {mask: [] for mask in range(full + 1)}
    labels[0] = [(Point(0.0, 0.0, ()), ())]
    bound = [min((point.cost for point in points), default=math.inf) for points in below]
    for mask in range(full):  # a superset has a larger number
        for point, steps in _spread(sorted(labels[mask], key=_delay), most_points):
            rest = full & ~mask
            group = rest
            while group:
                known = events[mask] if mask else None
                for cost, delay, chosen in _groups(estimator, edges, group, below, known, point, most_points):
                    remaining = sum(bound[i] for i in range(len(edges)) if (rest & ~group) >> i & 1)
                    late = delay > estimator.task.tolerance + SLACK
                    if not late and cost + remaining <= limit * (1 + 1e-12):
                        names = tuple(edges[i].name for i in range(len(edges)) if group >> i & 1)
                        _keep(labels[mask | group], Point(cost, delay, point.steps + chosen), (*steps, names))
                group = (group - 1) & rest
        if mask:
            labels[mask] = []
    found = [
        Point(point.cost, point.delay, (*point.steps, (junction.node, in_order(steps))))
        for point, steps in sorted(labels[full], key=_delay)
    ]
    return _spread(found, most_points)


def _delay(label: tuple[Point, Steps]) -> float:
    return label[0].delay


def _spread(points: list[T], number: int | None) -> list[T]:
    """Keeps the fastest point, the cheapest one, and those between that lie evenly."""
    if number is None or len(points) <= number:
        return points
    return [points[round(place * (len(points) - 1) / (number - 1))] for place in range(number)]


def _groups(
    estimator: Estimator,
    edges: Sequence[Edge],
    group: int,
    below: Sequence[Sequence[Point]],
    known: frozenset[str] | None,
    so_far: Point,
    most_points: int | None,
) -> Iterator[tuple[float, float, tuple[tuple[str, Steps], ...]]]:
    """Ways to obtain a group of inputs at once, after ``so_far``: one for each choice of points below.

    Yields those that no other one beats: cost, delay and the steps below.
    """
    found: list[tuple[float, float, tuple[tuple[str, Steps], ...]]] = [(so_far.cost, so_far.delay, ())]
    for index, edge in enumerate(edges):
        if not group >> index & 1:
            continue
        if known is not None and (not edge.hops or not math.isfinite(edge.request_delay)):
            return
        asked = 0.0 if known is None else so_far.delay + edge.request_delay
        price = estimator.edge_cost(edge, known)
        extended = [
            (cost + price + point.cost, max(delay, max(point.delay, asked) + edge.delay), steps + point.steps)
            for cost, delay, steps in found
            for point in below[index]
        ]
        estimator.operations += len(extended)
        found = _spread(_unbeaten(extended), most_points)
    yield from found


def _unbeaten(
    found: Iterable[tuple[float, float, tuple[tuple[str, Steps], ...]]],
) -> list[tuple[float, float, tuple[tuple[str, Steps], ...]]]:
    kept: list[tuple[float, float, tuple[tuple[str, Steps], ...]]] = []
    for each in sorted(found, key=lambda one: one[:2]):
        if not kept or each[1] < kept[-1][1]:
            kept.append(each)
    return kept


def _keep(labels: list[tuple[Point, Steps]], point: Point, steps: Steps) -> None:
    if any(other.cost <= point.cost and other.delay <= point.delay for other, _ in labels):
        return
    labels[:] = [each for each in labels if each[0].cost < point.cost or each[0].delay < point.delay]
    labels.append((point, steps))


def _subsets(names: Sequence[str]) -> Iterator[tuple[str, ...]]:
    return chain.from_iterable(combinations(names, size) for size in range(len(names) + 1))
