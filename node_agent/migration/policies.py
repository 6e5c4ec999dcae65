"""How an operator plans if what it knows is uncertain: three policies, and what their plans are worth.

The *weighted sum* is ``create_plan``: one time graph with expected costs, and a certain plan. It suits large
state, whose copying must begin while it is still uncertain where neighbours go. With *naive* and *k shortest*
the operator's own plan is uncertain: it decides on the way, so its state should be small.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from heapq import heappop, heappush
from math import prod

from node_agent.migration.chances import Distribution, chances_to_be_least, uniform
from node_agent.migration.costs import plan_cost
from node_agent.migration.create import Case, Created, create_plan, hosts_at, plan_of
from node_agent.migration.plan import Plan
from node_agent.migration.sequences import Likely, decompose, merge
from node_agent.migration.shortest_path import k_shortest_paths, shortest_path
from node_agent.migration.situation import Situation
from node_agent.migration.time_graph import time_graph

Policy = Callable[[Situation], Created]
MOST_SEQUENCES, MOST_COMBINATIONS = 8, 16
"""The likeliest ones are planned for: each combination needs a time graph."""


def naive(most_sequences: int = MOST_SEQUENCES, most_combinations: int = MOST_COMBINATIONS) -> Policy:
    """Plans for each combination of what neighbours may do, by itself, as if it was certain."""

    def policy(situation: Situation) -> Created:
        names = [each.name for each in situation.operator.neighbours]
        options = [decompose(situation.plans[name], most_sequences) for name in names]
        if all(len(each) == 1 for each in options):
            return create_plan(situation)
        cases, sequences = [], []
        broken = cost = 0.0
        for chance, combination in likeliest(options, most_combinations):
            plans = dict(zip(names, combination, strict=True))
            case = replace(situation, plans={**situation.plans, **plans})
            graph = time_graph(case)
            path = shortest_path(graph)
            sequences.append(Likely(chance, plan_of(path, case.operator, case.world.steps)))
            cases.append(Case(chance, case, graph.costs))
            breaks, costs = plan_cost(case, path.hosts, graph.costs)
            broken, cost = broken + chance * breaks, cost + chance * costs
        plan = merge(situation.world.steps, sequences)
        return Created(plan, broken, cost, cases[0].costs, tuple(cases))

    return policy


def likeliest(options: Sequence[Sequence[Likely]], most: int) -> list[tuple[float, tuple[Plan, ...]]]:
    """Of all combinations of one option each, the likeliest ``most``, the likeliest first; their chances are
    1 together. Options are in order of their chances."""
    found: list[tuple[float, tuple[Plan, ...]]] = []
    first = (0,) * len(options)
    heap = [(-_chance(options, first), first)]
    seen = {first}
    while heap and len(found) < most:
        chance, numbers = heappop(heap)
        found.append((-chance, tuple(each[n].plan for each, n in zip(options, numbers, strict=True))))
        for i, each in enumerate(options):
            further = (*numbers[:i], numbers[i] + 1, *numbers[i + 1 :])
            if further[i] < len(each) and further not in seen:
                seen.add(further)
                heappush(heap, (-_chance(options, further), further))
    whole = sum(chance for chance, _ in found)
    return [(chance / whole, plans) for chance, plans in found]


def _chance(options: Sequence[Sequence[Likely]], numbers: Sequence[int]) -> float:
    return prod(each[n].chance for each, n in zip(options, numbers, strict=True))


def k_shortest(k: int, spread: float, distribution: Distribution = uniform) -> Policy:
    """Keeps the ``k`` cheapest ways through one time graph, each as likely as it is to turn out the cheapest
    one. ``spread``: how far costs may be off, as a share, before estimates are made anew."""

    def policy(situation: Situation) -> Created:
        graph = time_graph(situation)
        paths = k_shortest_paths(graph, k)
        chances = chances_to_be_least([path.cost for path in paths], spread, distribution)
        sequences = [
            Likely(chance, plan_of(path, situation.operator, situation.world.steps))
            for chance, path in zip(chances, paths, strict=True)
            if chance > 0
        ]
        case = Case(1.0, situation, graph.costs)
        broken, cost = plan_cost(situation, paths[0].hosts, graph.costs)
        if len(sequences) == 1:
            return Created(sequences[0].plan, broken, cost, graph.costs)
        return Created(merge(situation.world.steps, sequences), broken, cost, graph.costs, (case,))

    return policy


def weigh(plan: Plan, situation: Situation, found: Created) -> tuple[float, float]:
    """Limits broken and cost of a plan that is followed already, by the measure by which ``found`` was made:
    if it decides on the way, in each case as the best of its sequences."""
    if not found.cases:
        cases: Sequence[Case] = [Case(1.0, situation, found.costs)]
    else:
        cases = found.cases
    sequences = [hosts_at(each.plan, situation.world.steps) for each in decompose(plan, MOST_SEQUENCES)]
    broken = cost = 0.0
    for case in cases:
        best = min(plan_cost(case.situation, hosts, case.costs) for hosts in sequences)
        broken, cost = broken + case.chance * best[0], cost + case.chance * best[1]
    return broken, cost
