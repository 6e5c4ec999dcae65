"""Ours: what the paper names as open (section VI), on top of its planner.

- Conversions are reversed. Where junctions have few inputs, all ways to push and pull are weighed
  (``optimum``, with a bounded number of pairs of cost and delay per junction). Where one has many, single
  inputs move between steps, also from pull back to push, and a pull is given up if more can be saved with the
  time that it took.
- Single junctions are shorted, or kept, by a beam search that begins with the trees shorted by levels.

The result is never more expensive than Comet's plan: that plan is among those it chooses from.
"""

from orchestrator.apps.comet.planning.ced_tree import CedTree, short, shorted_at
from orchestrator.apps.comet.planning.conversion import (
    climb_moves,
    convert,
    multi_pulls,
    pull_absent,
    single_pulls,
)
from orchestrator.apps.comet.planning.draft import Draft
from orchestrator.apps.comet.planning.estimator import Estimator, Plan, in_order
from orchestrator.apps.comet.planning.optimum import best_on_tree

BEAM = 3
ROUNDS = 8
MOST_OPERATIONS = 400_000
"""After so much work the search ends (``Estimator.operations``): some seconds."""
FEW_INPUTS = 8
"""Of a junction: so many are planned by weighing all ways."""
FEW_EDGES = 24
"""Of a tree with so many, junctions of ``FEW_INPUTS`` are; of a larger one, those of half as many."""
SOME_INPUTS = 12
"""Of a junction: with so many, conversions are reversed one by one."""
POINTS = 24
"""Pairs of cost and delay that a junction keeps; a quarter of them in large trees."""


def beyond(estimator: Estimator, tree: CedTree) -> Plan | None:
    """Returns None if no plan is fast enough."""
    tried: dict[frozenset[str], Plan] = {}
    end = estimator.operations + MOST_OPERATIONS

    def attempt(nodes: frozenset[str]) -> None:
        if nodes not in tried:
            shorted = short(tree, nodes)
            hurried = estimator.operations > end
            plan = convert(estimator, shorted) if hurried else improved(estimator, shorted)
            if plan is not None:
                tried[nodes] = plan

    for level in range(max(tree.height, 1), 0, -1):
        attempt(shorted_at(tree, level))
    if not tried:
        return None
    beam: list[frozenset[str]] = []
    for _ in range(ROUNDS):
        following = sorted(tried, key=lambda nodes: (tried[nodes].cost, len(nodes), sorted(nodes)))[:BEAM]
        if following == beam:
            break
        beam = following
        for nodes in beam:
            for node in tree.inner:
                if estimator.operations < end:
                    attempt(nodes ^ {node})
    return min(tried.values(), key=lambda plan: plan.cost)


def improved(estimator: Estimator, tree: CedTree) -> Plan | None:
    """A plan on a tree that is at least as cheap as what the two phases find."""
    widest = max(len(junction.inputs) for junction in tree.junctions)
    small = sum(len(junction.inputs) for junction in tree.junctions) <= FEW_EDGES
    if widest <= (FEW_INPUTS if small else FEW_INPUTS // 2):
        return best_on_tree(estimator, tree, most_points=POINTS if small else POINTS // 4)
    plan = convert(estimator, tree)
    return plan if plan is None or widest > SOME_INPUTS else reversed_conversions(estimator, plan)


def reversed_conversions(estimator: Estimator, plan: Plan) -> Plan:
    """Improves a plan on its tree as long as giving up a pull, or moving an input, makes it cheaper."""
    best = _climbed(estimator, plan)
    for _ in range(ROUNDS):
        better = best
        for junction in best.tree.junctions:
            steps = best.steps[junction.node]
            for name in (name for step in steps[1:] for name in step):
                draft = Draft(estimator, best.tree, best.steps)
                rest = [[n for n in step if n != name] for step in steps]
                draft.change(junction.node, in_order([[*rest[0], name], *rest[1:]]))
                single_pulls(draft, kept_pushed=frozenset([(junction.node, name)]))
                multi_pulls(draft)
                pull_absent(draft)
                found = draft.finished()
                if found.cost < better.cost * (1 - 1e-9):
                    better = found
        if better is best:
            return best
        best = better
    return best


def _climbed(estimator: Estimator, plan: Plan) -> Plan:
    draft = Draft(estimator, plan.tree, plan.steps)
    climb_moves(draft)
    multi_pulls(draft)
    pull_absent(draft)
    found = draft.finished()
    return found if found.cost < plan.cost else plan
