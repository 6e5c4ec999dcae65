"""Plans of one network for several tolerances, with the same estimates behind all of them."""

from dataclasses import replace

from benchmarks.comet.networks import MINUTE, Network
from orchestrator.apps.comet.planning.ced_tree import CedTree, build_tree
from orchestrator.apps.comet.planning.estimator import Estimator, Plan
from orchestrator.apps.comet.planning.planners import Planner
from orchestrator.apps.comet.planning.problem import tasks


def prepared(network: Network, tolerance_s: float | None = None) -> tuple[Estimator, CedTree]:
    """``tolerance_s``: None: that of the network's request."""
    request = network.request
    if tolerance_s is not None:
        request = replace(request, tolerance=tolerance_s)
    (task,) = tasks(request, network.world)
    return Estimator(task, network.world), build_tree(task, network.world)


def per_minute(plan: Plan | None) -> float | None:
    """The cost of a plan per minute, as the paper's axes have it."""
    return None if plan is None else plan.cost * MINUTE


def costs(network: Network, tolerance_min: float, planners: dict[str, Planner]) -> dict[str, float | None]:
    estimator, tree = prepared(network, tolerance_min * MINUTE)
    return {name: per_minute(planner(estimator, tree)) for name, planner in planners.items()}
