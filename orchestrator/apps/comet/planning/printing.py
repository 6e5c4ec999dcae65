"""A plan as text: a tree with what is pushed and pulled, and what the alternatives would cost."""

from collections.abc import Iterator

from node_agent.apps.comet.patterns import printed
from orchestrator.apps.comet.planning.ced_tree import CedTree, Edge, Junction
from orchestrator.apps.comet.planning.estimator import Estimator, Plan, Traffic
from orchestrator.apps.comet.planning.optimum import MOST_INPUTS
from orchestrator.apps.comet.planning.planners import PLANNERS, centralized_optimal
from orchestrator.apps.comet.planning.problem import World

MINUTE = 60.0


def plan_text(plan: Plan, given: World) -> str:
    """Costs are per minute: of a link, what one event costs on it times events; requests count, too."""
    task = plan.tree.task
    head = (
        f"{task.name} at {task.sink}: costs {plan.cost * MINUTE:.4g} per minute, "
        f"at most {_minutes(plan.delay)} late ({_minutes(task.tolerance)} allowed)"
    )
    estimator = Estimator(task, given)
    lines = [head, f"{task.sink} detects {printed(task.conjunct.shape)}"]
    lines += _inputs(plan, plan.tree.root, estimator, "")
    for edge in plan.tree.absent:
        pulled = edge.name in plan.pulled_absent
        mark = "pull after all others" if pulled else "push"
        lines.append(f"  {mark}: !{_edge(edge, estimator.absent_traffic(edge, pulled), pulled)}")
    return "\n".join(lines)


def _inputs(plan: Plan, junction: Junction, estimator: Estimator, indent: str) -> Iterator[str]:
    edges = junction.by_name
    known: frozenset[str] | None = None
    inputs = [(number, name) for number, step in enumerate(plan.steps[junction.node]) for name in step]
    for place, (number, name) in enumerate(inputs):
        if place and number != inputs[place - 1][0]:
            before = [edges[other].events for step, other in inputs if step < number]
            known = frozenset[str]().union(*before)
        last = place == len(inputs) - 1
        edge = edges[name]
        mark = f"pull {number}" if number else "push"
        carried = _edge(edge, estimator.traffic(edge, known), bool(number))
        yield f"{indent}{'└─' if last else '├─'} {mark}: {carried}"
        if edge.child is not None:
            yield from _inputs(plan, edge.child, estimator, indent + ("   " if last else "│  "))


def _edge(edge: Edge, traffic: Traffic, pulled: bool) -> str:
    if not edge.hops:
        return f"{edge.name}, which occurs here"
    events = sum(traffic.events.values()) * MINUTE
    cost = sum(traffic.events.values()) * sum(hop.cost for hop in edge.hops)
    cost = (cost + traffic.requests * edge.request_cost) * MINUTE
    delay = edge.delay + (edge.request_delay if pulled else 0.0)
    path = " > ".join([*(hop.lower for hop in edge.hops), edge.hops[-1].upper])
    what = edge.name if edge.child is None else f"what {edge.child.node} detects"
    asked = f", {traffic.requests * MINUTE:.3g} requests" if pulled else ""
    return f"{what} over {path}: {events:.3g} events{asked}, costs {cost:.4g} per minute, {_minutes(delay)}"


def alternatives_text(plan: Plan, tree: CedTree, given: World) -> str:
    """What other ways to plan would cost. ``tree``: the one before junctions were shorted."""
    estimator = Estimator(tree.task, given)
    lines = ["alternatives:"]
    for name, planner in PLANNERS.items():
        if planner is centralized_optimal and len(tree.root.events) > MOST_INPUTS:
            lines.append(f"  {name}: not computed for more than {MOST_INPUTS} events")
            continue
        other = planner(estimator, tree)
        if other is None:
            lines.append(f"  {name}: too late")
            continue
        share = other.cost / plan.cost - 1 if plan.cost else 0.0
        cost = f"costs {other.cost * MINUTE:.4g} per minute ({share:+.0%})"
        lines.append(f"  {name}: {cost}, at most {_minutes(other.delay)} late")
    return "\n".join(lines)


def _minutes(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds < 2 * MINUTE else f"{seconds / MINUTE:.4g} min"
