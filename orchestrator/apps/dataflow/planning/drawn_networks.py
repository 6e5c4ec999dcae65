"""Draws random networks, lets a placement policy place a query on them, and counts the hops of a tuple's way.

The planner of replicas asks this. Nobody knows beforehand where nodes that move will be, so a policy is told
distances (in hops) only of nodes that stay; otherwise all nodes are equally far from each other.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from math import dist, inf
from typing import NamedTuple

from node_agent.apps.dataflow.model.query import OperatorSpec, Query
from orchestrator.apps.dataflow.planning.arrangement import Slot
from orchestrator.apps.dataflow.planning.placement_policy import Drawn, PlacementPolicy, Site
from orchestrator.planning.distances import Distance

MOST = 8
"""The largest k that is derived, whatever more replicas would gain."""
DRAWN_NODES = 100
"""Larger networks are drawn as a part with this many nodes and the same density; hops grow with the side."""
_NETWORKS = 100
_QUERIES_EACH = 4
_TRIES = 20
"""How often to draw until source and sink are connected."""


@dataclass(frozen=True)
class Placing:
    """How a chain of operators is placed on any network. ``needs``: cores that source, operators and sink
    need, in this order; ``cores``: those of a node; ``stays``: whether nodes stay where they are.
    """

    policy: PlacementPolicy
    needs: tuple[float, ...]
    cores: int
    stays: bool

    def hosts(self, order: Sequence[int], distance: Distance, k: int) -> dict[Slot, int]:
        """Returns the node of each of k replicas; those for which there is no room are missing. Source and
        sink are on the first two nodes of ``order``.
        """
        query = _chain(len(self.needs))
        names = query.names()
        nodes = [str(node) for node in order]
        site = Site(
            query=query,
            order=nodes,
            needs=dict(zip(names, self.needs, strict=True)),
            cores=dict.fromkeys(nodes, self.cores),
            roles={},
            settings=Drawn(),
            measure=lambda: distance,
            foresee=lambda: distance,
        )
        counts = dict.fromkeys(names, k) | {names[0]: 1, names[-1]: 1}
        return {slot: int(node) for slot, node in self.policy.hosts(site, counts).items()}


class DrawnWays(NamedTuple):
    degree: float
    ways: list[list[int | None]]
    """For each draw the fewest hops from source to sink, by number of replicas from 1; None: no way."""


@lru_cache(maxsize=256)
def drawn_ways(nodes: int, width_m: float, height_m: float, range_m: float, placing: Placing) -> DrawnWays:
    most = _most(nodes, placing)
    if most < 1:
        return DrawnWays(0.0, [])
    rng = random.Random("replication")
    neighbours = 0
    ways: list[list[int | None]] = []
    for _ in range(_NETWORKS):
        places = [(rng.random() * width_m, rng.random() * height_m) for _ in range(nodes)]
        network = _links(places, range_m)
        neighbours += sum(mask.bit_count() for mask in network)
        for _ in range(_QUERIES_EACH):
            if found := _fewest_hops(network, placing, most, rng):
                ways.append(found)
    return DrawnWays(neighbours / nodes / _NETWORKS, ways)


def _most(nodes: int, placing: Placing) -> int:
    """Returns how many replicas of every operator there is room for, up to ``MOST``."""
    if nodes < 2:
        return 0
    placed = placing.hosts(range(nodes), _anywhere, MOST)
    names = _chain(len(placing.needs)).names()
    return min(sum((name, i) in placed for i in range(MOST)) for name in names[1:-1])


@lru_cache(maxsize=16)
def _chain(length: int) -> Query:
    names = [str(i) for i in range(length)]
    before = [(), *((name,) for name in names)]
    return Query("", tuple(OperatorSpec(name, "", up) for name, up in zip(names, before, strict=False)))


def _anywhere(_: str, __: str) -> float:
    return 1.0


def _links(places: list[tuple[float, float]], range_m: float) -> list[int]:
    """Returns each node's neighbours, as bits of a number."""
    network = [0] * len(places)
    for (i, here), (j, there) in combinations(enumerate(places), 2):
        if dist(here, there) <= range_m:
            network[i] |= 1 << j
            network[j] |= 1 << i
    return network


def _fewest_hops(network: list[int], placing: Placing, most: int, rng: random.Random) -> list[int | None]:
    """Returns the fewest hops from a random source to a random sink, by number of replicas from 1; empty if
    no two nodes are connected.

    More replicas are added to the fewer, as placement does.
    """
    operators = len(placing.needs) - 2
    for _ in range(_TRIES):
        source, sink, *others = rng.sample(range(len(network)), min(len(network), 2 + operators * most))
        hops = {source: _hops_from(network, source)}
        if sink in hops[source]:
            break
    else:
        return []

    def from_node(node: int) -> dict[int, int]:
        if node not in hops:
            hops[node] = _hops_from(network, node)
        return hops[node]

    def distance(one: str, other: str) -> float:
        return from_node(int(one)).get(int(other), inf)

    order = dict.fromkeys(
        [source, sink, *(node for i in range(most) for node in others[i::most]), *range(len(network))]
    )
    placed = placing.hosts([*order], distance if placing.stays else _anywhere, most)
    names = _chain(len(placing.needs)).names()
    ways: list[int | None] = []
    for k in range(1, most + 1):
        reached = {source: 0}
        for name in names[1:-1]:
            reached = _onward(reached, [placed[name, i] for i in range(k)], from_node)
        ways.append(_onward(reached, [sink], from_node).get(sink))
    return ways


def _onward(
    reached: Mapping[int, int], hosts: Sequence[int], hops_from: Callable[[int], Mapping[int, int]]
) -> dict[int, int]:
    """Returns the fewest hops to each host that can be reached, given those to the nodes before them."""
    found: dict[int, int] = {}
    for last, so_far in reached.items():
        onward = hops_from(last)
        for host in hosts:
            if host in onward:
                way = so_far + onward[host]
                found[host] = min(found.get(host, way), way)
    return found


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
