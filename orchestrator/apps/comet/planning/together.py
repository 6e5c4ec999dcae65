"""Plans requests, several at once too: an event that more than one plan sends over a link is sent once.

The alternatives of a pattern with ``or`` are planned in the same way. A plan sends a share of an event's
instances over a link; instances that others send anyway cost nothing more. With shares taken as independent,

    cost = Σ_links Σ_e CF · λ_e · (1 - Π_plans (1 - share)) + requests of all plans

(more than the truth where plans choose their instances by the same events). Plans are made one after another,
each with the discount that the others give it, as long as the sum falls.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from orchestrator.apps.comet.planning.beyond import beyond
from orchestrator.apps.comet.planning.ced_tree import ALPHA, FASTEST, CedTree, Edge, build_tree, relinked
from orchestrator.apps.comet.planning.conversion import SLACK
from orchestrator.apps.comet.planning.estimator import Estimator, Plan, Traffic
from orchestrator.apps.comet.planning.planners import Planner
from orchestrator.apps.comet.planning.problem import Request, Task, Unplannable, World, tasks

ROUNDS = 3
LinkEvent = tuple[str, str, str]


@dataclass(frozen=True)
class Joint:
    """Plans for several tasks. ``cost``: of all per second; ``apart``: if nothing were shared."""

    plans: tuple[Plan, ...]
    cost: float
    apart: float


@dataclass(frozen=True)
class Flow:
    """What one plan sends: shares of instances by link and event, and what its requests cost."""

    shares: dict[LinkEvent, float]
    requests: float


def plan_requests(
    requests: Iterable[Request], given: World, planner: Planner = beyond, alpha: float = ALPHA
) -> Joint:
    """Raises Unplannable if a pattern cannot be met, a sink not be reached, or a tolerance not be kept.

    plan_requests([Request("fire", parse("and(smoke, heat; 60s)"), sink="n01", tolerance=1800)], given)
    """
    all_tasks = [task for request in requests for task in tasks(request, given)]
    trees = [tree_within(task, given, alpha) for task in all_tasks]
    alone = [_planned(planner, Estimator(tree.task, given), tree) for tree in trees]
    apart = sum(plan.cost for plan in alone)
    if len(alone) == 1:
        return Joint(tuple(alone), apart, apart)
    plans = list(alone)
    flows = [flow_of(plan, given) for plan in plans]
    cost = joint_cost(plans, flows, given)
    for _ in range(ROUNDS):
        before = cost
        for number, tree in enumerate(trees):
            others = [flow for other, flow in enumerate(flows) if other != number]
            estimator = Estimator(tree.task, given, discounts(others))
            steps = _planned(planner, estimator, tree)
            candidate = Estimator(tree.task, given).plan(steps.tree, steps.steps, steps.pulled_absent)
            changed = [*plans[:number], candidate, *plans[number + 1 :]]
            changed_flows = [*flows[:number], flow_of(candidate, given), *flows[number + 1 :]]
            total = joint_cost(changed, changed_flows, given)
            if total < cost:
                plans, flows, cost = changed, changed_flows, total
        if cost >= before:
            break
    return Joint(tuple(plans), cost, apart)


def under(joint: Joint, given: World) -> Joint:
    """What the same plans cost, and how late they are, with other rates and links."""
    plans = [
        Estimator(plan.tree.task, given).plan(relinked(plan.tree, given), plan.steps, plan.pulled_absent)
        for plan in joint.plans
    ]
    apart = sum(plan.cost for plan in plans)
    if len(plans) == 1:
        return Joint(tuple(plans), apart, apart)
    return Joint(tuple(plans), joint_cost(plans, [flow_of(plan, given) for plan in plans], given), apart)


def tree_within(task: Task, given: World, alpha: float = ALPHA) -> CedTree:
    """The tree by ``alpha``; the fastest tree if only that one keeps the tolerance. Raises Unplannable."""
    tree = build_tree(task, given, alpha)
    if tree.fastest <= task.tolerance + SLACK:
        return tree
    fastest = build_tree(task, given, FASTEST)
    least = min(tree.fastest, fastest.fastest)
    if fastest.fastest > task.tolerance + SLACK:
        raise Unplannable(
            f'the pattern "{task.name}" may be {task.tolerance:g} s late, but the fastest plan can take '
            f"{least:.1f} s: allow at least {math.ceil(least)} s"
        )
    return fastest


def _planned(planner: Planner, estimator: Estimator, tree: CedTree) -> Plan:
    plan = planner(estimator, tree)
    assert plan is not None, "pushing everything is fast enough on this tree"
    return plan


def flow_of(plan: Plan, given: World) -> Flow:
    shares: dict[LinkEvent, float] = {}
    requests = 0.0
    for edge, traffic in traffic_of(plan, given):
        requests += traffic.requests * edge.request_cost
        for event, rate in traffic.events.items():
            for hop in edge.hops:
                shares[hop.lower, hop.upper, event] = rate / given.sources[event].rate
    return Flow(shares, requests)


def traffic_of(plan: Plan, given: World) -> Iterator[tuple[Edge, Traffic]]:
    estimator = Estimator(plan.tree.task, given)
    for junction in plan.tree.junctions:
        edges = junction.by_name
        known: frozenset[str] | None = None
        for step in plan.steps[junction.node]:
            for name in step:
                yield edges[name], estimator.traffic(edges[name], known)
            known = (known or frozenset()).union(*(edges[name].events for name in step))
    for edge in plan.tree.absent:
        yield edge, estimator.absent_traffic(edge, edge.name in plan.pulled_absent)


def discounts(flows: Sequence[Flow]) -> dict[LinkEvent, float]:
    """The shares of instances that none of the flows sends."""
    left: dict[LinkEvent, float] = {}
    for flow in flows:
        for key, share in flow.shares.items():
            left[key] = left.get(key, 1.0) * (1 - share)
    return left


def joint_cost(plans: Sequence[Plan], flows: Sequence[Flow], given: World) -> float:
    prices: dict[tuple[str, str], float] = {}
    for plan in plans:
        for junction in plan.tree.junctions:
            for edge in (*junction.inputs, *plan.tree.absent):
                prices.update({(hop.lower, hop.upper): hop.cost for hop in edge.hops})
    events = sum(
        prices[lower, upper] * given.sources[event].rate * (1 - left)
        for (lower, upper, event), left in discounts(flows).items()
    )
    return events + sum(flow.requests for flow in flows)
