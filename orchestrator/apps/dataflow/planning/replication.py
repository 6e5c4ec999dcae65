"""How many replicas an operator needs, from what is known of a network beforehand (the paper, III-A).

Only approximate aggregates are asked for: how many nodes on how much ground, how far a radio reaches, how
fast nodes move, which operators a tuple passes, how much CPU they need, and how they are placed. From these
the planner

1. draws random networks (uniform places, a link wherever two nodes are in range), in each of them random
   places for source and sink, and lets the placement policy place k = 1, 2, … replicas of each operator;
2. takes the fewest hops L that lead from the source through one replica of each operator to the sink;
3. values this way at ``exp(-L · s / D) / L``: hops share the air, so a stream over L hops gets 1/L of it; and
   each of its links breaks after D seconds on average (the mean chord πR/2 of a disc, crossed at the mean
   relative speed 4v/π: D = π²R / 8v), after which nothing arrives for the s seconds that it takes to notice
   and to switch. No way is worth nothing. Source and sink are drawn connected: where they are not, no number
   of replicas helps;
4. stops at the last k whose replica gains at least ``WORTH`` in the mean over all draws. Gains diminish,
   while each replica takes a node, its CPU and memory, and gives more occasion to switch.

So k grows as the network gets sparser (longer ways, operators cut off), faster or slower to notice, and falls
where everybody is near everybody. The same aggregates always give the same k, whatever the seed of a run.
"""

from dataclasses import dataclass
from itertools import pairwise
from math import exp, inf, pi

from orchestrator.apps.dataflow.planning.drawn_networks import DRAWN_NODES, Placing, drawn_ways

WORTH = 0.15
"""The least gain of one more replica, as a share of the value without it."""


@dataclass(frozen=True)
class Prospect:
    """The expected network and query. ``settle_s``: seconds from a link's break to the use of another way."""

    nodes: int
    width_m: float
    height_m: float
    range_m: float
    speed: float
    placing: Placing
    settle_s: float

    @property
    def link_life_s(self) -> float:
        return pi**2 * self.range_m / (8 * self.speed) if self.speed > 0 else inf


@dataclass(frozen=True)
class Advice:
    replicas: int
    hops: float | None
    """Mean hops from source to sink through that many replicas; None if there never is a way."""
    hops_of_one: float | None
    """The same without replication."""
    degree: float
    gains: tuple[float, ...]
    """The gain of the second replica, the third, … up to one more than ``replicas``, if there are nodes for
    so many, as shares of the value without it.
    """


def advise(prospect: Prospect) -> Advice:
    side = max(prospect.nodes / DRAWN_NODES, 1.0) ** 0.5
    drawn = drawn_ways(
        min(prospect.nodes, DRAWN_NODES),
        prospect.width_m / side,
        prospect.height_m / side,
        prospect.range_m,
        prospect.placing,
    )
    ways = [[way if way is None else way * side for way in ways] for ways in drawn.ways]
    values = [sum(_value(way, prospect) for way in by_draw) for by_draw in zip(*ways, strict=True)]
    gains = [after / before - 1 if before else (inf if after else 0.0) for before, after in pairwise(values)]
    enough = max((k for k, gain in enumerate(gains, 2) if gain >= WORTH), default=1)
    return Advice(
        replicas=enough,
        hops=_mean([way[enough - 1] for way in ways]),
        hops_of_one=_mean([way[0] for way in ways]),
        degree=drawn.degree,
        gains=tuple(gains[:enough]),
    )


def _value(hops: float | None, prospect: Prospect) -> float:
    return 0.0 if hops is None else exp(-hops * prospect.settle_s / prospect.link_life_s) / hops


def _mean(ways: list[float | None]) -> float | None:
    found = [way for way in ways if way is not None]
    return sum(found) / len(found) if found else None
