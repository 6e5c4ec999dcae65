"""The ways to plan a task: the paper's, the centralised ones it is compared with, and ours beyond it."""

from collections.abc import Callable, Iterator, Mapping

from orchestrator.apps.comet.planning.beyond import beyond
from orchestrator.apps.comet.planning.ced_tree import CedTree, short, shorted_at
from orchestrator.apps.comet.planning.conversion import SLACK, Order, convert
from orchestrator.apps.comet.planning.estimator import Estimator, Plan, all_pushed
from orchestrator.apps.comet.planning.optimum import best_on_tree

Planner = Callable[[Estimator, CedTree], Plan | None]
"""Returns None if no plan of its kind is fast enough."""


def all_push(estimator: Estimator, tree: CedTree) -> Plan | None:
    """Every instance goes to the sink at once, which alone detects."""
    central = centralised(tree)
    plan = estimator.plan(central, {central.root.node: all_pushed(central.root)}, frozenset())
    return plan if plan.delay <= estimator.task.tolerance + SLACK else None


def centralized_heuristic(estimator: Estimator, tree: CedTree) -> Plan | None:
    """The two phases, with the sink as the only junction."""
    return convert(estimator, centralised(tree))


def centralized_optimal(estimator: Estimator, tree: CedTree) -> Plan | None:
    """The best way to push and pull at the sink alone (Akdere et al. 2008); exponential in the events."""
    return best_on_tree(estimator, centralised(tree))


def comet(
    estimator: Estimator,
    tree: CedTree,
    order: Order = Order.CDR,
    *,
    second_phase: bool = True,
    stops: bool = False,
) -> Plan | None:
    """The two phases on the tree and on each tree shorted by levels; the cheapest plan (section IV-C)."""
    return cheapest(
        convert(estimator, each, order, second_phase=second_phase, stops=stops)
        for each in virtual_trees(tree)
    )


def virtual_trees(tree: CedTree) -> Iterator[CedTree]:
    seen = set()
    for level in range(max(tree.height, 1), 0, -1):
        nodes = shorted_at(tree, level)
        if nodes not in seen:
            seen.add(nodes)
            yield short(tree, nodes)


def centralised(tree: CedTree) -> CedTree:
    return short(tree, tree.inner)


def cheapest(plans: Iterator[Plan | None]) -> Plan | None:
    found = [plan for plan in plans if plan is not None]
    return min(found, key=lambda plan: plan.cost, default=None)


PLANNERS: Mapping[str, Planner] = {
    "all push": all_push,
    "centralized heuristic": centralized_heuristic,
    "centralized optimal": centralized_optimal,
    "Comet": comet,
    "ours": beyond,
}
