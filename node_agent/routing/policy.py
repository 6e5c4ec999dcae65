"""Replica selection: from what a replica knows now to the route its output takes (seed 000, Algorithm 1).

A policy is a pure function from a view and the current route to the new route, so that every decision can
be tested alone and replayed from its inputs.
"""

from collections.abc import Callable, Mapping
from functools import cache
from math import inf

from msgspec import Struct

from node_agent.model.cost_graph import CostGraph
from node_agent.model.plan import DeploymentPlan, Replica
from node_agent.routing.shortest_path import distances


class View(Struct, frozen=True):
    """What replica ``own`` decides on; ``threshold`` is the gain, in cost, that a switch must exceed."""

    graph: CostGraph
    plan: DeploymentPlan
    own: Replica
    threshold: float = 0.0


class Hop(Struct, frozen=True):
    """The chosen replica and the cost of the path through it to the sinks; None: no path at present."""

    to: str
    cost: float | None


class Route(Struct, frozen=True):
    """For each downstream operator the hop in use; None where there is no usable replica."""

    hops: dict[str, Hop | None] = {}

    def to(self, downstream: str) -> str | None:
        hop = self.hops.get(downstream)
        return hop.to if hop else None


Policy = Callable[[View, Route], Route]

PathCosts = dict[str, dict[str, float]]
"""For each downstream operator: replica id → cost of the path through it to the sinks (inf: no path)."""


def path_costs(view: View) -> PathCosts:
    """What each direct downstream replica would cost, by dynamic programming from the sinks backwards.

    A replica with several downstream operators feeds all of them: its cost to the sinks is the sum of its
    best choices, and infinite if one of them cannot be reached.
    """
    query, plan, own = view.plan.query, view.plan, view.own
    below = query.reachable_from([own.operator]) - {own.operator}
    to_sinks: dict[str, float] = {}

    @cache
    def reach(node: str) -> dict[str, float]:
        return distances(view.graph, node)

    def through(sender: Replica, downstream: str) -> dict[str, float]:
        network = reach(sender.node)
        return {r.id: network.get(r.node, inf) + to_sinks[r.id] for r in plan.of(downstream)}

    for name in reversed(query.topological()):
        if name in below:
            for replica in plan.of(name):
                branches = [through(replica, downstream) for downstream in query.downstream(name)]
                to_sinks[replica.id] = sum((min(b.values(), default=inf) for b in branches), 0.0)
    return {downstream: through(own, downstream) for downstream in query.downstream(own.operator)}


def shortest_path(view: View, current: Route) -> Route:
    """``adapt_route``: switch if the gain exceeds the threshold or the replica in use cannot be reached."""
    return Route(
        {
            downstream: _adapt(costs, current.to(downstream), view.threshold)
            for downstream, costs in path_costs(view).items()
        }
    )


def _adapt(costs: Mapping[str, float], current: str | None, threshold: float) -> Hop | None:
    # min() keeps the first of equals: the plan's order breaks ties.
    best = min(costs, key=lambda replica: costs[replica], default=None)
    if best is None or costs[best] == inf:
        return None
    if current is not None:
        cost = costs.get(current, inf)
        if cost < inf and cost - costs[best] <= threshold:
            return Hop(current, cost)
    return Hop(best, costs[best])


def static(view: View, current: Route) -> Route:
    """The first replica of each downstream operator for ever: execution without network awareness."""
    return Route({downstream: _first(costs) for downstream, costs in path_costs(view).items()})


def _first(costs: Mapping[str, float]) -> Hop | None:
    for replica, cost in costs.items():
        return Hop(replica, cost if cost < inf else None)
    return None


POLICIES: Mapping[str, Policy] = {"shortest_path": shortest_path, "static": static}
