"""What an all-knowing observer sees: links, shortest routes, and their record for the analysis.

Until a routing daemon runs on the nodes, routes and costs come from here; whoever gets them is told so
(``source="ground_truth"``).
"""

import json
from collections.abc import Mapping
from heapq import heappop, heappush
from pathlib import Path
from typing import IO, Any

from node_agent.model.cost_graph import CostGraph

Links = Mapping[str, Mapping[str, float]]


def true_costs(links: Links, now_ns: int) -> CostGraph:
    costs = {node: dict(peers) for node, peers in links.items()}
    return CostGraph(costs, metric="hops", source="ground_truth", taken_ns=now_ns)


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
