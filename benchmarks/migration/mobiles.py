"""Sources and consumers of the simulation: where they are, what they send, and what they foretell."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import hypot

from benchmarks.migration.topologies import Tree
from benchmarks.migration.traffic import Traffic
from node_agent.migration.learned import Habits, Visit, foretell, learn
from node_agent.migration.leaves import square
from node_agent.migration.mobility import deviates, linear, navigation, on_way, reckoned, surrounding
from node_agent.migration.plan import Plan, Steps, certain_plan

Capture = str
"""``exact``, ``navi``, ``linear`` or ``learned``."""
ERROR_M, LOOK_BACK = 20.0, 10
"""Of dead reckoning: how far a place is off now, and from how many seconds direction and speed come."""
Ends = list[tuple[str, float]]
"""Leaf brokers and bytes a second."""


def steady_rate(rate: float) -> Callable[[int], float]:
    return lambda t: rate


@dataclass(frozen=True)
class Learning:
    """What is known of mobiles in general before the measurement begins.

    ``habits``: hand-overs of other vehicles; ``growth``: metres a second by which dead reckoning is off, in
    the mean over 60 s ahead.
    """

    traffic: Traffic
    tree: Tree
    until: int

    @cached_property
    def habits(self) -> Habits:
        names = self.traffic.places
        return learn(self.traffic.visits(name, self.tree.leaves, 0, self.until) for name in names)

    @cached_property
    def growth(self) -> float:
        ahead, off = 60, []
        for way in self.traffic.places.values():
            for t in range(LOOK_BACK, self.until - ahead, 60):
                seen = [(way[t - LOOK_BACK], float(t - LOOK_BACK)), (way[t], float(t))]
                x, y = reckoned(seen, t + ahead)
                off.append(hypot(x - way[t + ahead][0], y - way[t + ahead][1]))
        return sum(off) / len(off) / ahead if off else 0.0


@dataclass(frozen=True)
class Mobile:
    """``begin``: the second of the traffic at which the measurement begins. ``rate``: bytes that it sends in
    each second; ``average``: what it expects to send. ``edge``: of the square around it if it stands for all
    that is seen there, else 0."""

    name: str
    who: str
    learning: Learning
    begin: int
    capture: Capture
    average: float
    rate: Callable[[int], float]
    edge: float = 0.0

    def ends(self, t: int) -> Ends:
        spot = self.learning.traffic.places[self.who][self.begin + t]
        leaves, rate = self.learning.tree.leaves, self.rate(t)
        if not self.edge:
            return [(leaves.leaf(spot), rate)]
        shares = sorted(leaves.shares(square(spot, self.edge / 2)).items())
        return [(leaf, share * rate) for leaf, share in shares]

    def plan(self, t: int, steps: Steps) -> Plan:
        traffic, leaves = self.learning.traffic, self.learning.tree.leaves
        way, now = traffic.places[self.who], self.begin + t
        spots = None
        horizon = steps.end - t
        if self.capture == "exact":
            last = len(way) - 1
            spots = [way[min(self.begin + int(each), last)] for each in steps.times]
        elif self.capture == "navi":
            route = [(spot, at - self.begin) for spot, at in traffic.route(self.who, now, horizon)]
            if not self.edge:
                return navigation(route, leaves, steps, self.average)
            spots = [on_way(route, each) for each in steps.times]
        elif self.capture == "linear":
            then = max(0, now - LOOK_BACK)
            seen = [(way[then], float(then - self.begin)), (way[now], float(t))]
            if not self.edge:
                return linear(seen, leaves, steps, self.average, ERROR_M, self.learning.growth)
            spots = [reckoned(seen, each) for each in steps.times]
        else:
            visits = traffic.visits(self.who, leaves, 0, now + 1)
            before = visits[-2].leaf if len(visits) > 1 else ""
            here = Visit(visits[-1].leaf, visits[-1].t - self.begin)
            return foretell(self.learning.habits, before, here, steps, self.average)
        if self.edge:
            return surrounding(spots, self.edge / 2, leaves, steps, self.average)
        return certain_plan(steps, [leaves.leaf(spot) for spot in spots], self.average)

    def is_off(self, plan: Plan, t: int) -> bool:
        """Whether it must plan anew. Rates are not looked at: the plan has the expected one."""
        ends = self.ends(t)
        if not self.edge:
            return deviates(plan, t, ends[0][0], self.average, 0.0)
        if t >= plan.steps.end:
            return True
        (planned,) = plan.stages[plan.steps.index(t)]
        return max(ends, key=lambda each: each[1])[0] not in planned.hosts


def changing(low: float, high: float, every: float, seconds: int, seed: int) -> Callable[[int], float]:
    """A rate that jumps to a random value between two others, each so many seconds."""
    made = random.Random(f"rates {seed} {every:g}")
    values = [made.uniform(low, high) for _ in range(int(seconds / every) + 2)]
    bounds = [every * n for n in range(len(values) + 1)]

    def rate(t: int) -> float:
        """The mean over the second that begins at ``t``."""
        parts = (
            value * max(0.0, min(t + 1, end) - max(t, begin))
            for value, (begin, end) in zip(values, pairwise(bounds), strict=True)
        )
        return sum(parts)

    return rate
