"""Shortest paths over the network's cost graph, and what they make the links between replicas cost.

The cost of an application-level link is that of the shortest network path between the two nodes (seed 000,
section IV-A).
"""

import heapq
from collections.abc import Mapping
from math import inf
from typing import NamedTuple

from node_agent.model.cost_graph import CostGraph

Links = Mapping[str, Mapping[str, float]]


class Tree(NamedTuple):
    """The cheapest ways that start at one node: what they cost, and each node's predecessor on its way."""

    costs: dict[str, float]
    previous: dict[str, str]

    def path(self, end: str) -> tuple[str, ...]:
        """The nodes on the way to ``end``, which can be reached, without the start."""
        nodes: list[str] = []
        node = end
        while node in self.previous:
            nodes.append(node)
            node = self.previous[node]
        return tuple(reversed(nodes))


def distances(graph: CostGraph, start: str) -> dict[str, float]:
    """Cost of reaching every node that can be reached from ``start``, itself included at 0."""
    return tree(graph, start).costs


def tree(graph: CostGraph, start: str) -> Tree:
    return _dijkstra(graph.costs, {start: 0.0})


def reversed_links(graph: CostGraph) -> Links:
    backwards: dict[str, dict[str, float]] = {}
    for sender, row in graph.costs.items():
        for receiver, cost in row.items():
            backwards.setdefault(receiver, {})[sender] = cost
    return backwards


def towards(backwards: Links, ends: Mapping[str, float]) -> dict[str, float]:
    """From each node the cost of the cheapest way to one of ``ends``, plus what that end says it costs."""
    return _dijkstra(backwards, ends).costs


def _dijkstra(links: Links, starts: Mapping[str, float]) -> Tree:
    best = {node: cost for node, cost in starts.items() if cost < inf}
    previous: dict[str, str] = {}
    done: set[str] = set()
    frontier = [(cost, node) for node, cost in best.items()]
    heapq.heapify(frontier)
    nowhere: dict[str, float] = {}
    while frontier:
        distance, node = heapq.heappop(frontier)
        if node in done:
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
