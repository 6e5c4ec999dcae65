"""One round of the router: decides a replica's new route, and what is recorded about it."""

from collections.abc import Mapping
from typing import NamedTuple

from msgspec import Struct

from node_agent.apps.dataflow.events import LinkCost, RouteDecision, RouteSwitch
from node_agent.apps.dataflow.model.decision import Rule, Situation
from node_agent.apps.dataflow.model.plan import DeploymentPlan, Replica
from node_agent.apps.dataflow.switching.chooser import Chooser, Chosen
from node_agent.apps.dataflow.switching.known_costs import KnownCosts, situation
from node_agent.apps.dataflow.switching.route import Hop, Route
from node_agent.model.telemetry import Event


class View(Struct, frozen=True):
    """What replica ``own`` decides on; ``queued`` tuples wait for each downstream operator.

    ``silent``: downstream replicas that do not answer, whatever the network layer reports.
    """

    plan: DeploymentPlan
    own: Replica
    costs: KnownCosts
    rule: Rule = Rule()
    queued: Mapping[str, int] = {}
    now_ns: int = 0
    silent: tuple[str, ...] = ()

    def situation(self, downstream: str, current: str | None) -> Situation:
        queued = self.queued.get(downstream, 0)
        found = situation(
            self.plan, self.own, downstream, self.costs, self.rule, current, queued, self.now_ns
        )
        return found.without(self.silent)


class Decision(NamedTuple):
    route: Route
    events: tuple[Event, ...]


def decide(view: View, before: Route, chooser: Chooser | None = None) -> Decision:
    """Returns the new route of a replica. ``chooser``: by default that of the view's rule."""
    chooser = chooser or Chooser(view.rule.policy)
    hops: dict[str, Hop | None] = {}
    memory: dict[str, Struct] = {}
    decided: list[Event] = []
    switched: list[Event] = []
    for downstream in view.plan.routed(view.own.operator):
        current = before.to(downstream)
        found = view.situation(downstream, current)
        chosen = chooser.choose(found, before.memory.get(downstream))
        choice = chosen.choice
        hops[downstream] = choice.hop
        if choice.memory is not None:
            memory[downstream] = choice.memory
        decided.append(_decision(view, downstream, found, chosen))
        if current != (new := choice.hop.to if choice.hop else None):
            switched.append(_switch(view, downstream, found, current, new))
    return Decision(Route(hops, memory), (*_link_costs(view), *decided, *switched))


def _link_costs(view: View) -> list[LinkCost]:
    costs = view.costs
    return [
        LinkCost(view.own.id, r.id, costs.links.get(r.id), costs.metric, costs.source)
        for downstream in view.plan.routed(view.own.operator)
        for r in view.plan.of(downstream)
    ]


def _decision(view: View, downstream: str, found: Situation, chosen: Chosen) -> RouteDecision:
    hop, rule = chosen.choice.hop, found.rule
    return RouteDecision(
        replica=view.own.id,
        downstream=downstream,
        policy=chosen.policy,
        old=found.current,
        new=hop.to if hop else None,
        candidates=found.candidates,
        shares=dict(hop.shares) if hop else {},
        needed=chosen.choice.needed,
        threshold=rule.threshold.gain,
        relative=rule.threshold.relative,
        exponent=rule.exponent,
        draw_seed=rule.seed,
        queued=found.queued,
        shared=found.shared,
        whole=found.whole,
        metric=view.costs.metric,
        source=view.costs.source,
        taken_ns=view.costs.taken_ns,
    )


def _switch(view: View, downstream: str, found: Situation, old: str | None, new: str | None) -> RouteSwitch:
    # Both costs of a switch are present ones, not those of when the old replica was chosen.
    def cost(to: str | None) -> float | None:
        candidate = found.candidate(to) if to is not None else None
        return candidate.path if candidate is not None else None

    return RouteSwitch(view.own.id, downstream, old, new, cost(old), cost(new), view.costs.source)
