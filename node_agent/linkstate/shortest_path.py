"""Shortest paths over the network's cost graph, and the resulting costs between replicas.

The cost from one replica to another is that of the shortest network path between their nodes (the paper,
section IV-A).
"""

import heapq
from collections import defaultdict
from collections.abc import Mapping
from math import inf
from typing import NamedTuple

from node_agent.model.cost_graph import CostGraph

Links = Mapping[str, Mapping[str, float]]


class Tree(NamedTuple):
    """The cheapest paths from one node: their costs, and each node's predecessor."""

    costs: dict[str, float]
    previous: dict[str, str]

    def path(self, end: str) -> tuple[str, ...]:
        """Returns the nodes on the way to ``end``, which must be reachable, without the start."""
        nodes: list[str] = []
        node = end
        while node in self.previous:
            nodes.append(node)
            node = self.previous[node]
        return tuple(reversed(nodes))


def distances(graph: CostGraph, start: str) -> dict[str, float]:
    """Returns the cost of reaching every reachable node from ``start``, which itself has cost 0."""
    return tree(graph, start).costs


def tree(graph: CostGraph, start: str) -> Tree:
    return _cheapest(graph.costs, {start: 0.0}, graph.relays)


def reversed_links(graph: CostGraph) -> Links:
    backwards = defaultdict[str, dict[str, float]](dict)
    for sender, row in graph.costs.items():
        for receiver, cost in row.items():
            backwards[receiver][sender] = cost
    return backwards


def towards(backwards: Links, ends: Mapping[str, float], relays: bool = True) -> dict[str, float]:
    """Returns from each node the lowest cost of reaching one of ``ends``, plus that end's own cost."""
    return _cheapest(backwards, ends, relays).costs


def _cheapest(links: Links, starts: Mapping[str, float], relays: bool) -> Tree:
    """Without ``relays``, a path is one link."""
    best = {node: cost for node, cost in starts.items() if cost < inf}
    previous: dict[str, str] = {}
    done: set[str] = set()
    frontier = [(cost, node) for node, cost in best.items()]
    heapq.heapify(frontier)
    nowhere: dict[str, float] = {}
    while frontier:
        distance, node = heapq.heappop(frontier)
        if node in done or not (relays or distance == starts.get(node)):
            continue
        done.add(node)
        for neighbour, cost in links.get(node, nowhere).items():
            if not cost >= 0:  # also false for NaN
                raise ValueError(f"the link between {node} and {neighbour} has the impossible cost {cost}")
            through = distance + cost
            if through < best.get(neighbour, inf):
                best[neighbour] = through
                previous[neighbour] = node
                heapq.heappush(frontier, (through, neighbour))
    return Tree(best, previous)
