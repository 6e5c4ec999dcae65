"""What it costs to have an operator at a broker during a step, and which latency limits that breaks.

Cost of a stream = bytes a second × latency × seconds. If a neighbour's plan is uncertain, each of its
expected placements counts by its probability (the thesis' weighted sum).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from node_agent.migration.plan import Expected
from node_agent.migration.situation import Neighbour, Situation

SLACK = 1e-9
"""Seconds by which a latency may be above its limit: sums of floats are not exact."""


@dataclass(frozen=True, slots=True)
class Costs:
    """By step and by target, in the order of ``Situation.targets``.

    ``placing``: the cost. ``broken``: how many streams take longer than their limit. ``some``: whether at
    least one stream keeps its limit.
    """

    placing: list[list[float]]
    broken: list[list[int]]
    some: list[list[bool]]


def costs(situation: Situation) -> Costs:
    operator, world = situation.operator, situation.world
    rows = [world.network.latency[world.network.number[name]] for name in situation.targets()]
    number = world.network.number
    views = [(each, _views(situation, each)) for each in operator.neighbours]
    flows: dict[tuple[Expected, bool], list[float]] = {}
    delays: dict[tuple[str, ...], list[float]] = {}

    def flow(expected: Expected, upstream: bool) -> list[float]:
        """Bytes a second × latency, by target."""
        if (expected, upstream) not in flows:
            rates = expected.rates if upstream else [operator.rate] * len(expected.hosts)
            ends = [(number[host], rate) for host, rate in zip(expected.hosts, rates, strict=True)]
            flows[expected, upstream] = [sum(rate * row[end] for end, rate in ends) for row in rows]
        return flows[expected, upstream]

    def delay(hosts: tuple[str, ...]) -> list[float]:
        if hosts not in delays:
            delays[hosts] = [max(row[number[host]] for host in hosts) for row in rows]
        return delays[hosts]

    found = Costs([], [], [])
    for k, seconds in enumerate(world.steps.seconds()):
        placing, broken, kept = [0.0] * len(rows), [0] * len(rows), [not views] * len(rows)
        for neighbour, view in views:
            for chance, expected in view[k]:
                _add(placing, flow(expected, neighbour.upstream), chance * seconds)
            if neighbour.limit == inf:
                kept = [True] * len(rows)
                continue
            expected_delay = [0.0] * len(rows)
            for chance, expected in view[k]:
                _add(expected_delay, delay(expected.hosts), chance)
            for i, each in enumerate(expected_delay):
                if each > neighbour.limit + SLACK:
                    broken[i] += 1
                else:
                    kept[i] = True
        found.placing.append(placing)
        found.broken.append(broken)
        found.some.append(kept)
    return found


def _add(total: list[float], vector: list[float], weight: float) -> None:
    for i, each in enumerate(vector):
        total[i] += weight * each


def _views(situation: Situation, neighbour: Neighbour) -> list[tuple[tuple[float, Expected], ...]]:
    """What is expected of a neighbour at each of our steps; outside of its plan, its first or last step."""
    plan = situation.plans[neighbour.name]
    likely = plan.likely()
    return [likely[plan.steps.index(t)] for t in situation.world.steps.times]


def moving_cost(situation: Situation, source: str, target: str) -> float:
    """What moving the state once costs: its bytes × latency."""
    return situation.operator.state * situation.world.network.between(source, target)


def plan_cost(situation: Situation, hosts: Sequence[str], known: Costs | None = None) -> tuple[int, float]:
    """How many limits a sequence of hosts breaks, over all steps and streams, and what it costs."""
    found = known or costs(situation)
    index = {name: i for i, name in enumerate(situation.targets())}
    broken, total, last = 0, 0.0, situation.host
    for k, host in enumerate(hosts):
        broken += found.broken[k][index[host]]
        total += found.placing[k][index[host]]
        if host != last:
            total += moving_cost(situation, last, host)
        last = host
    return broken, total
