"""One round of the router: what a replica's new route is, and what the telemetry has to say about it."""

from math import isfinite
from typing import NamedTuple

from node_agent.model.telemetry import Event, LinkCost, RouteSwitch
from node_agent.routing.policy import Policy, Route, View, path_costs
from node_agent.routing.shortest_path import distances


class Decision(NamedTuple):
    route: Route
    events: tuple[Event, ...]


def decide(policy: Policy, view: View, current: Route) -> Decision:
    route = policy(view, current)
    return Decision(route, (*_link_costs(view), *_switches(view, current, route)))


def _link_costs(view: View) -> list[LinkCost]:
    downstreams = view.plan.query.downstream(view.own.operator)
    reach = distances(view.graph, view.own.node) if downstreams else {}
    return [
        LinkCost(view.own.id, r.id, reach.get(r.node), view.graph.metric, view.graph.source)
        for downstream in downstreams
        for r in view.plan.of(downstream)
    ]


def _switches(view: View, current: Route, route: Route) -> list[RouteSwitch]:
    changed = [d for d in view.plan.query.downstream(view.own.operator) if current.to(d) != route.to(d)]
    costs = path_costs(view) if changed else {}

    def cost(downstream: str, to: str | None) -> float | None:
        """Both sides of a switch are told at the prices of now, not those of when the old was chosen."""
        found = costs[downstream].get(to) if to is not None else None
        return found if found is not None and isfinite(found) else None

    switches = ((d, current.to(d), route.to(d)) for d in changed)
    return [
        RouteSwitch(view.own.id, d, old, new, cost(d, old), cost(d, new), view.graph.source)
        for d, old, new in switches
    ]
