"""Carries out a plan with the state machines of nodes over periodic contacts, as ``simulation`` does by
itself.
"""

import random

from benchmarks.comet.contacts import Schedule
from benchmarks.comet.execution import Execution, Wire
from benchmarks.comet.simulation import Outcome, poisson
from node_agent.apps.comet.node_plan import StoreLimits
from orchestrator.apps.comet.planning.estimator import Plan
from orchestrator.apps.comet.planning.links import Link
from orchestrator.apps.comet.planning.node_plans import node_plans
from orchestrator.apps.comet.planning.problem import World


def carry_out(plan: Plan, given: World, seed: int, duration: float) -> Outcome:
    """``duration``: seconds in which events occur. Marks cost nothing: they are counted apart."""
    rng = random.Random(f"comet/carried out/{seed}")
    names = sorted({*plan.tree.root.events, *plan.tree.task.conjunct.absent})
    instances = [
        (given.sources[name].node, each)
        for name in names
        for each in poisson(given.sources[name], rng, duration)
    ]
    until = duration + 2 * plan.delay
    wires, costs = {}, {}
    for link in given.links:
        wires[link.a, link.b] = Wire(link.bandwidth, link.latency, _periodic(link, until, rng))
        costs[link.a, link.b] = costs[link.b, link.a] = link.cost_factor(given.sizes)
    limits = StoreLimits(event=round(given.sizes.event), request=round(given.sizes.request))
    nodes = node_plans([plan], [plan.tree.task.name], limits)
    ended = Execution(nodes, wires, instances, seed=seed).run(until)
    share = given.sizes.request / given.sizes.event
    cost = sum(costs[way] * (sent.events + share * sent.requests) for way, sent in ended.sent.items())
    return Outcome(
        cost / duration,
        sum(sent.events for sent in ended.sent.values()),
        sum(sent.requests for sent in ended.sent.values()),
        {found: at - found.end for _, found, at in ended.found},
        [instance for _, instance in instances],
    )


def _periodic(link: Link, until: float, rng: random.Random) -> Schedule:
    """Up for EAP, down for EDP, from a random moment of the period on."""
    period = link.edp + link.eap
    first = -rng.random() * period
    begins = (first + number * period for number in range(int(until / period) + 2))
    return Schedule(tuple((max(begin, 0.0), begin + link.eap) for begin in begins if begin + link.eap > 0))
