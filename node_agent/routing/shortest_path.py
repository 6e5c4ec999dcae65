"""Shortest paths over the network's cost graph, and what they make the links between replicas cost.

The cost of an application-level link is that of the shortest network path between the two nodes (seed 000,
section IV-A).
"""

import heapq
from math import inf

from node_agent.model.cost_graph import CostGraph


def distances(graph: CostGraph, start: str) -> dict[str, float]:
    """Cost of reaching every node that can be reached from ``start``, itself included at 0."""
    best = {start: 0.0}
    done: set[str] = set()
    frontier = [(0.0, start)]
    while frontier:
        distance, node = heapq.heappop(frontier)
        if node in done:
            continue
        done.add(node)
        for neighbour, cost in graph.costs.get(node, {}).items():
            if not cost >= 0:  # also false for NaN
                raise ValueError(f"link {node} → {neighbour} has the impossible cost {cost}")
            through = distance + cost
            if through < best.get(neighbour, inf):
                best[neighbour] = through
                heapq.heappush(frontier, (through, neighbour))
    return best
