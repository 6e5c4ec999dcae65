"""How many replicas an operator needs, from what is known of a network beforehand (the paper, III-A).

Only approximate aggregates are asked for: how many nodes on how much ground, how far a radio reaches, how
fast nodes move, how many operators a tuple passes. From these the planner

1. draws random networks (uniform places, a link wherever two nodes are in range) and in each of them random
   places for source, sink and k = 1, 2, … replicas of each operator, one operator per node;
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

import random
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, pairwise
from math import dist, exp, inf, pi
from typing import NamedTuple

WORTH = 0.15
"""The least gain of one more replica, as a share of the value without it."""
MOST = 8
"""The largest k that is derived, whatever more replicas would gain."""
DRAWN_NODES = 100
"""Larger networks are drawn as a part with this many nodes and the same density; hops grow with the side."""
_NETWORKS = 100
_QUERIES_EACH = 4
_TRIES = 20
"""How often to draw until source and sink are connected."""


@dataclass(frozen=True)
class Prospect:
    """The expected network and query. ``settle_s``: seconds from a link's break to the use of another way."""

    nodes: int
    width_m: float
    height_m: float
    range_m: float
    speed: float
    operators: int
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
    drawn = _drawn(
        min(prospect.nodes, DRAWN_NODES),
        prospect.width_m / side,
        prospect.height_m / side,
        prospect.range_m,
        prospect.operators,
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


class _Drawn(NamedTuple):
    degree: float
    ways: list[list[int | None]]
    """For each draw the fewest hops from source to sink, by number of replicas from 1; None: no way."""


@lru_cache(maxsize=256)
def _drawn(nodes: int, width_m: float, height_m: float, range_m: float, operators: int) -> _Drawn:
    most = min(MOST, (nodes - 2) // operators)
    if most < 1:
        return _Drawn(0.0, [])
    rng = random.Random("replication")
    neighbours = 0
    ways: list[list[int | None]] = []
    for _ in range(_NETWORKS):
        places = [(rng.random() * width_m, rng.random() * height_m) for _ in range(nodes)]
        network = _links(places, range_m)
        neighbours += sum(mask.bit_count() for mask in network)
        for _ in range(_QUERIES_EACH):
            if found := _fewest_hops(network, operators, most, rng):
                ways.append(found)
    return _Drawn(neighbours / nodes / _NETWORKS, ways)


def _links(places: list[tuple[float, float]], range_m: float) -> list[int]:
    """Returns each node's neighbours, as bits of a number."""
    network = [0] * len(places)
    for (i, here), (j, there) in combinations(enumerate(places), 2):
        if dist(here, there) <= range_m:
            network[i] |= 1 << j
            network[j] |= 1 << i
    return network


def _fewest_hops(network: list[int], operators: int, most: int, rng: random.Random) -> list[int | None]:
    """Returns the fewest hops from a random source to a random sink, by number of replicas from 1; empty if
    no two nodes are connected.

    More replicas are added to the fewer, as placement does.
    """
    for _ in range(_TRIES):
        source, sink, *hosts = rng.sample(range(len(network)), 2 + operators * most)
        direct = _hops_from(network, source)
        if sink in direct:
            break
    else:
        return []
    hops = {host: _hops_from(network, host) for host in hosts if host in direct}
    ways: list[int | None] = []
    for k in range(1, most + 1):
        reached = {source: 0}
        for first in range(0, operators * most, most):
            reached = {
                host: min(so_far + hops[host][last] for last, so_far in reached.items())
                for host in hosts[first : first + k]
                if reached and host in hops
            }
        ways.append(min((so_far + hops[host][sink] for host, so_far in reached.items()), default=None))
    return ways


def _hops_from(network: list[int], start: int) -> dict[int, int]:
    hops = {start: 0}
    seen = frontier = 1 << start
    count = 0
    while frontier:
        count += 1
        near = 0
        while frontier:
            lowest = frontier & -frontier
            near |= network[lowest.bit_length() - 1]
            frontier ^= lowest
        frontier = left = near & ~seen
        seen |= near
        while left:
            lowest = left & -left
            hops[lowest.bit_length() - 1] = count
            left ^= lowest
    return hops
