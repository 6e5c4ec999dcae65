"""Measures how long one replica takes to decide: 50 nodes at the paper's density, 3 operators, 5 replicas of
each.

Includes path costs, candidates and their record; it is the source's decision, which looks furthest ahead.
"""

import random
import time
from itertools import permutations
from math import dist, sqrt
from statistics import median

from benchmarks.shared.harness import Figures, main
from node_agent.apps.dataflow.model.decision import Rule
from node_agent.apps.dataflow.model.plan import DeploymentPlan, Replica
from node_agent.apps.dataflow.model.query import OperatorSpec, Query
from node_agent.apps.dataflow.switching.decision import View, decide
from node_agent.apps.dataflow.switching.known_costs import costs_from_link_state
from node_agent.apps.dataflow.switching.policy import POLICIES
from node_agent.apps.dataflow.switching.route import Route
from node_agent.model.cost_graph import CostGraph

NODES, OPERATORS, REPLICAS = 50, 3, 5
SIDE_M, RANGE_M = 1200 * sqrt(NODES / 25), 500.0
NETWORKS, TARGET_MS = 200, 5.0


def network(draw: random.Random) -> CostGraph:
    at = {f"n{i:02d}": (draw.uniform(0, SIDE_M), draw.uniform(0, SIDE_M)) for i in range(NODES)}
    costs: dict[str, dict[str, float]] = {node: {} for node in at}
    for one, other in permutations(at, 2):
        if (length := dist(at[one], at[other])) < RANGE_M:
            costs[one][other] = 1.0 + (length / RANGE_M) ** 4 + draw.uniform(0, 0.2)
    return CostGraph(costs, "etx", "benchmark", 0)


def plan(draw: random.Random) -> DeploymentPlan:
    names = ["camera", *(f"op{i}" for i in range(1, OPERATORS + 1)), "screen"]
    specs = [OperatorSpec(name, "work", tuple(names[max(0, i - 1) : i])) for i, name in enumerate(names)]
    nodes = draw.sample([f"n{i:02d}" for i in range(NODES)], 2 + OPERATORS * REPLICAS)
    slots = [(name, i) for name in names for i in range(REPLICAS if name.startswith("op") else 1)]
    replicas = (Replica(name, i, node) for (name, i), node in zip(slots, nodes, strict=True))
    return DeploymentPlan(Query("chain", tuple(specs)), tuple(replicas))


def measure_policy(policy: str) -> list[float]:
    """Returns the milliseconds of each decision, over networks that change every time."""
    draw = random.Random(1)
    deployed = plan(draw)
    own = deployed.replicas[0]
    route, took = Route(), []
    for number in range(NETWORKS):
        graph = network(draw)
        started = time.perf_counter()
        costs = costs_from_link_state(graph, deployed, own, policy)
        view = View(deployed, own, costs, Rule(policy), {"op1": 1}, number * 2_000_000_000)
        route = decide(view, route).route
        took.append((time.perf_counter() - started) * 1e3)
    return took


def measure() -> Figures:
    """Returns the figures. ``milliseconds``: the median of the slowest policy; a busy machine shows in
    ``slowest_ms`` only.
    """
    times = {policy: measure_policy(policy) for policy in POLICIES}
    return {
        "benchmark": "adapt_route",
        "milliseconds": max(median(took) for took in times.values()),
        "target_ms": TARGET_MS,
        "slowest_ms": max(max(took) for took in times.values()),
        **{f"{policy}_ms": median(took) for policy, took in times.items()},
    }


if __name__ == "__main__":
    main("adapt_route: 50 nodes, h = 3, k = 5", measure)
