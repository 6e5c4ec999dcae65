"""What an all-knowing observer sees: links, shortest routes, and their record for the analysis.

Until a routing daemon runs on the nodes, routes and costs come from here; whoever gets them is told so
(``source="ground_truth"``).
"""

import json
from collections.abc import Callable, Mapping
from heapq import heappop, heappush
from pathlib import Path
from typing import IO, Any

from node_agent.model.cost_graph import CostGraph

Links = Mapping[str, Mapping[str, float]]


class GroundTruth:
    """Implements the agents' LinkState and the virtual hosts' next hop on the true links of this moment."""

    def __init__(self, now_ns: Callable[[], int]) -> None:
        self._now_ns = now_ns
        self._links: Links = {}
        self._next_hops: dict[str, dict[str, str]] = {}
        self._graph: CostGraph | None = None

    def update(self, links: Links) -> None:
        if links != self._links:
            self._links = links
            self._next_hops.clear()
            self._graph = None

    async def cost_graph(self) -> CostGraph:
        if self._graph is None:
            costs = {node: dict(peers) for node, peers in self._links.items()}
            self._graph = CostGraph(costs, metric="hops", source="ground_truth", taken_ns=self._now_ns())
        return self._graph

    def next_hop(self, node: str, destination: str) -> str | None:
        if destination not in self._next_hops:
            self._next_hops[destination] = next_hops_towards(destination, self._links)
        return self._next_hops[destination].get(node)


def next_hops_towards(destination: str, links: Links) -> dict[str, str]:
    """For every node that can reach ``destination``: its neighbour on a cheapest path there."""
    reverse: dict[str, list[tuple[str, float]]] = {}
    for node, peers in links.items():
        for peer, cost in peers.items():
            reverse.setdefault(peer, []).append((node, cost))
    distance = {destination: 0.0}
    next_hop: dict[str, str] = {}
    frontier = [(0.0, destination)]
    while frontier:
        so_far, node = heappop(frontier)
        if so_far > distance[node]:
            continue
        for upstream, cost in reverse.get(node, ()):
            if so_far + cost < distance.get(upstream, float("inf")):
                distance[upstream] = so_far + cost
                next_hop[upstream] = node
                heappush(frontier, (so_far + cost, upstream))
    return next_hop


class TruthRecorder:
    """Writes ``radio/positions.jsonl`` (samples) and ``radio/links.jsonl`` (changes)."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._positions = (directory / "positions.jsonl").open("w")
        self._links = (directory / "links.jsonl").open("w")
        self._known: dict[tuple[str, str], float] = {}

    def positions(self, t_ns: int, positions: Mapping[str, tuple[float, float]]) -> None:
        for node, (x, y) in positions.items():
            _write(self._positions, {"t_ns": t_ns, "node": node, "x": round(x, 3), "y": round(y, 3)})

    def links(self, t_ns: int, links: Links) -> None:
        current = {(src, dst): cost for src, peers in links.items() for dst, cost in peers.items()}
        if current == self._known:
            return
        for pair in sorted({*current, *self._known}):
            if (cost := current.get(pair)) != self._known.get(pair):
                src, dst = pair
                up = cost is not None
                _write(self._links, {"t_ns": t_ns, "src": src, "dst": dst, "up": up, "cost": cost})
        self._known = current

    def close(self) -> None:
        self._positions.close()
        self._links.close()


def _write(file: IO[str], value: dict[str, Any]) -> None:
    file.write(json.dumps(value, separators=(",", ":")) + "\n")
