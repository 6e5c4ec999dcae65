"""Ground truth: the true links, the cheapest routes over them, and their record for the analysis.

If nodes run no routing daemon, routes and costs come from here, marked ``source="ground_truth"``.
"""

import json
from collections.abc import Iterable, Mapping
from heapq import heappop, heappush
from math import isfinite
from pathlib import Path
from typing import IO, Any, NamedTuple

from node_agent.model.cost_graph import CostGraph

Links = Mapping[str, Mapping[str, float]]


def true_costs(links: Links, now_ns: int, metric: str = "etx", relays: bool = True) -> CostGraph:
    costs = {node: dict(peers) for node, peers in links.items()}
    return CostGraph(costs, metric=metric, source="ground_truth", taken_ns=now_ns, relays=relays)


def counted_in_hops(links: Links) -> Links:
    """Returns the same links with equal costs, so that costs count hops."""
    return {node: dict.fromkeys(peers, 1.0) for node, peers in links.items()}


def next_hops_towards(destination: str, links: Links) -> dict[str, str]:
    """Returns, for every node that can reach ``destination``, its neighbour on a cheapest path."""
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


class LinkUse(NamedTuple):
    """How much a link was used during an interval, and the expected delivery of a full-size
    frame at its end.
    """

    source: str
    destination: str
    attempted: int
    delivered: int
    expected: float
    snr_db: float


class TruthRecorder:
    """Writes ``positions.jsonl`` (samples), ``links.jsonl`` (changes) and ``deliveries.jsonl`` (sums)."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._positions = (directory / "positions.jsonl").open("w")
        self._links = (directory / "links.jsonl").open("w")
        self._deliveries = (directory / "deliveries.jsonl").open("w")
        self._known: dict[tuple[str, str], float] = {}

    def positions(self, t_ns: int, positions: Mapping[str, tuple[float, float]]) -> None:
        for node, (x, y) in positions.items():
            _write(self._positions, {"t_ns": t_ns, "node": node, "x": round(x, 3), "y": round(y, 3)})
        self._flush()

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

    def deliveries(self, t_ns: int, uses: Iterable[LinkUse]) -> None:
        for use in uses:
            record = {
                "t_ns": t_ns,
                "src": use.source,
                "dst": use.destination,
                "attempted": use.attempted,
                "delivered": use.delivered,
                "expected": round(use.expected, 4),
                # The SNR at a node whose radio is off is -inf, which JSON cannot express.
                "snr_db": round(use.snr_db, 2) if isfinite(use.snr_db) else None,
            }
            _write(self._deliveries, record)
        self._flush()

    def close(self) -> None:
        self._positions.close()
        self._links.close()
        self._deliveries.close()

    def _flush(self) -> None:
        """Lets whoever follows the run read what there is; called once for each sample."""
        for file in (self._positions, self._links, self._deliveries):
            file.flush()


def _write(file: IO[str], value: dict[str, Any]) -> None:
    file.write(json.dumps(value, separators=(",", ":")) + "\n")
