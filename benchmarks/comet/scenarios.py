"""Random networks, patterns, events and contacts for the oracle."""

import random
from dataclasses import dataclass

from benchmarks.comet.contacts import Schedule, kept_promises, wild
from benchmarks.comet.execution import Crash, Wire
from benchmarks.comet.simulation import poisson
from node_agent.apps.comet.conjuncts import ConjunctError, conjuncts
from node_agent.apps.comet.events import EventSource, Instance
from node_agent.apps.comet.node_plan import NodePlan, StoreLimits
from node_agent.apps.comet.patterns import And, Event, Not, Or, Pattern, Seq
from orchestrator.apps.comet.planning.beyond import beyond
from orchestrator.apps.comet.planning.estimator import Plan
from orchestrator.apps.comet.planning.links import Link, Sizes
from orchestrator.apps.comet.planning.node_plans import node_plans
from orchestrator.apps.comet.planning.planners import (
    Planner,
    all_push,
    centralized_heuristic,
    comet,
)
from orchestrator.apps.comet.planning.problem import Request, Unplannable, World, world
from orchestrator.apps.comet.planning.together import plan_requests

PLANNERS: tuple[Planner, ...] = (all_push, centralized_heuristic, comet, beyond)
SIZES = Sizes(event=200.0, request=20.0)
SLOW = 1500.0
"""Bytes per second of links in rough runs: contacts then often end in the middle of a transfer."""
EVENTS_S = 600.0
"""Seconds in which events occur."""


@dataclass(frozen=True)
class Scenario:
    """``promised``: by request, the delay that its plans promise. ``until``: when everything is settled."""

    seed: int
    requests: tuple[Request, ...]
    plans: dict[str, NodePlan]
    promised: dict[str, float]
    instances: tuple[tuple[str, Instance], ...]
    wires: dict[tuple[str, str], Wire]
    crashes: tuple[Crash, ...]
    until: float
    pulls: int


def scenario(seed: int, *, rough: bool) -> Scenario:
    """``rough``: with crashes, and contacts that keep no promise and end in the middle of transfers."""
    rng = random.Random(f"comet/oracle/{seed}/{rough}")
    while True:
        made = _scenario(seed, rng, rough)
        if made is not None:
            return made


def _scenario(seed: int, rng: random.Random, rough: bool) -> Scenario | None:
    names = [f"n{number}" for number in range(rng.randrange(2, 11))]
    links = _links(names, rng)
    sources = _sources(names, rng)
    given = world(links, sources, SIZES)
    requests = []
    for number in range(rng.choice([1, 1, 2])):
        pattern = random_pattern([each.name for each in sources], rng)
        requests.append(Request(f"r{number}", pattern, rng.choice(names), 1e9))
    planner = rng.choice(PLANNERS)
    try:
        requests, plans = _planned(requests, given, planner, rng)
    except Unplannable:
        return None
    of_plans = [plan.tree.task.name.split(".")[0] for plan in plans]
    promised = {
        name: max(plan.delay for plan, of in zip(plans, of_plans, strict=True) if of == name)
        for name in set(of_plans)
    }
    instances = [(each.node, one) for each in sources for one in poisson(each, rng, EVENTS_S)]
    slow = 40 if rough else 1
    until = EVENTS_S + 60 + slow * max(promised.values()) + slow * 60
    wires = {}
    for link in links:
        bandwidth = min(link.bandwidth, SLOW) if rough else link.bandwidth
        wires[link.a, link.b] = Wire(bandwidth, link.latency, _schedule(link, until, rng, rough))
    crashes = []
    if rough:
        for _ in range(rng.randrange(1, 9)):
            at, lasts = rng.uniform(0, EVENTS_S + 200), rng.choice([0.0, rng.uniform(0, 100)])
            crashes.append(Crash(rng.choice(names), at, lasts))
    limits = StoreLimits(event=int(SIZES.event), request=int(SIZES.request))
    by_node = node_plans(plans, of_plans, limits)
    pulls = sum(len(plan.steps[j.node]) - 1 for plan in plans for j in plan.tree.junctions)
    pulls += sum(len(plan.pulled_absent) for plan in plans)
    return Scenario(
        seed,
        tuple(requests),
        by_node,
        promised,
        tuple(instances),
        wires,
        tuple(crashes),
        until,
        pulls,
    )


def _schedule(link: Link, until: float, rng: random.Random, rough: bool) -> Schedule:
    if not rough:
        return kept_promises(link.edp, link.eap, until, rng)
    return wild(link.edp / 4, link.eap / 4, until, rng)


def _planned(
    requests: list[Request], given: World, planner: Planner, rng: random.Random
) -> tuple[list[Request], tuple[Plan, ...]]:
    """With a tolerance between the fastest delay and some times as much."""
    loose = plan_requests(requests, given, all_push)
    fastest: dict[str, float] = {}
    for plan in loose.plans:
        name = plan.tree.task.name.split(".")[0]
        fastest[name] = max(fastest.get(name, 0.0), plan.delay)
    times = rng.choice([1.0, 2.0, 4.0, 1000.0])
    wanted = [
        Request(each.name, each.pattern, each.sink, min(fastest[each.name] * times + 0.1, 1e9))
        for each in requests
    ]
    return wanted, plan_requests(wanted, given, planner).plans


def _links(names: list[str], rng: random.Random) -> list[Link]:
    pairs = {(names[rng.randrange(max(0, i - 4), i)], names[i]) for i in range(1, len(names))}
    for _ in range(len(names) // 3):
        first, second = sorted(rng.sample(range(len(names)), 2))
        pairs.add((names[first], names[second]))
    return [
        Link(
            b,
            a,
            edp=rng.choice([0.0, 5.0, 30.0, 60.0]),
            eap=rng.choice([20.0, 40.0]),
            bandwidth=rng.choice([2000.0, 20_000.0, 200_000.0]),
            latency=rng.choice([0.0, 0.1, 1.0]),
        )
        for a, b in sorted(pairs)
    ]


def _sources(names: list[str], rng: random.Random) -> list[EventSource]:
    count = rng.randrange(2, 8)
    ranks = rng.sample(range(1, count + 1), count)
    fastest = rng.choice([0.2, 0.1, 0.05])
    return [
        EventSource(
            f"e{number}", rng.choice(names), fastest / rank**0.7, length=rng.choice([0.0, 0.0, 0.5, 3.0])
        )
        for number, rank in enumerate(ranks)
    ]


def random_pattern(events: list[str], rng: random.Random) -> Pattern:
    """One that planning can use."""
    while True:
        found = _pattern(rng.sample(events, min(len(events), rng.randrange(2, 6))), rng, 2)
        try:
            alternatives = conjuncts(found)
        except ConjunctError:
            continue
        if len(alternatives) <= 6:
            return found


def _pattern(events: list[str], rng: random.Random, depth: int) -> Pattern:
    if len(events) == 1:
        return Event(events[0])
    if depth == 0:
        parts: list[Pattern] = [Event(name) for name in events]
    else:
        parts, rest = [], list(events)
        while rest:
            size = len(rest) if len(rest) < 2 else rng.choice([1, 1, 1, 2])
            parts.append(_pattern(rest[:size], rng, depth - 1))
            rest = rest[size:]
    if len(parts) == 1:
        return parts[0]
    kind = rng.choice(["and", "and", "seq", "seq", "or"])
    if kind == "or":
        return Or(tuple(parts))
    for place in range(len(parts)):
        others = any(not isinstance(part, Not) for at, part in enumerate(parts) if at != place)
        if others and rng.random() < 0.2:
            parts[place] = Not(parts[place])
    window = rng.choice([2.0, 5.0, 10.0, 25.0])
    return And(tuple(parts), window) if kind == "and" else Seq(tuple(parts), window)
