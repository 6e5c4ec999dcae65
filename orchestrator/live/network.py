"""Where nodes are and which links there are, from the radio's ground truth or from what routing sees."""

from collections.abc import Iterator
from math import isfinite
from typing import Any

from orchestrator.live.sources import DELIVERY, LINK, POSITION, Delivery, Link, Position
from orchestrator.runs.timeline import Change

LEAST_MOVE_M = 0.05
LEAST_COST_CHANGE = 0.05
"""A share: links whose cost changes by less stay as they are."""
LEAST_SIGNAL_CHANGE_DB = 0.5
SIGNAL_PERIOD_S = 1.0
MOST_LINKS = 100_000


class NetworkView:
    """Leaves out changes that nobody can see: 50 nodes have thousands of links. ``has_signals``: whether
    signal-to-noise ratios mean anything."""

    def __init__(self, nodes: frozenset[str], has_signals: bool = True) -> None:
        self._nodes = nodes
        self._has_signals = has_signals
        self._places: dict[str, tuple[float, float]] = {}
        self._costs: dict[str, float] = {}
        self._signals: dict[str, tuple[float, float]] = {}
        self._neighbours: dict[str, frozenset[str]] = {}
        self._frames: dict[str, list[int]] = {}
        """By node: frames attempted and delivered so far."""
        self._sent: set[str] = set()

    def take(self, kind: int, t: float, truth: Any) -> Iterator[Change]:
        if kind == POSITION:
            yield from self._move(t, truth)
        elif kind == LINK:
            yield from self._link(t, truth)
        elif kind == DELIVERY and truth.src in self._nodes and truth.dst in self._nodes:
            self._count(truth)
            if self._has_signals:
                yield from self._signal(t, truth)

    def tick(self, t: float) -> Iterator[Change]:
        """Ends what was counted in the seconds before ``t``."""
        for node in sorted(self._sent):
            attempted, delivered = self._frames[node]
            yield Change(t, "", "frames", node, {"attempted": attempted, "delivered": delivered})
        self._sent.clear()

    def neighbours(self, t: float, node: str, costs: dict[str, Any]) -> Iterator[Change]:
        """Takes the costs of ``node``'s neighbours by its routing: links where nothing is emulated."""
        known = {peer: cost for peer, cost in costs.items() if peer in self._nodes and _is_cost(cost)}
        for peer in sorted(self._neighbours.get(node, frozenset()) - set(known)):
            yield from self._cost(t, f"{node}>{peer}", None)
        self._neighbours[node] = frozenset(known)
        for peer, cost in known.items():
            yield from self._cost(t, f"{node}>{peer}", cost)

    def _move(self, t: float, truth: Position) -> Iterator[Change]:
        if truth.node not in self._nodes:
            return
        x, y = self._places.get(truth.node, (float("inf"), 0.0))
        if max(abs(truth.x - x), abs(truth.y - y)) >= LEAST_MOVE_M:
            self._places[truth.node] = (truth.x, truth.y)
            yield Change(t, "", "position", truth.node, [round(truth.x, 2), round(truth.y, 2)])

    def _link(self, t: float, truth: Link) -> Iterator[Change]:
        if truth.src in self._nodes and truth.dst in self._nodes:
            cost = truth.cost if truth.up and _is_cost(truth.cost) else None
            yield from self._cost(t, f"{truth.src}>{truth.dst}", cost)

    def _cost(self, t: float, key: str, cost: float | None) -> Iterator[Change]:
        before = self._costs.get(key)
        if cost is None:
            if before is not None:
                del self._costs[key]
                yield Change(t, "", "link", key, None)
            return
        if before is None:
            differs = len(self._costs) < MOST_LINKS
        else:
            differs = abs(cost - before) > LEAST_COST_CHANGE * before
        if differs:
            self._costs[key] = cost
            yield Change(t, "", "link", key, {"etx": round(cost, 3)})

    def _count(self, truth: Delivery) -> None:
        frames = self._frames.setdefault(truth.src, [0, 0])
        frames[0] += truth.attempted
        frames[1] += truth.delivered
        self._sent.add(truth.src)

    def _signal(self, t: float, truth: Delivery) -> Iterator[Change]:
        if truth.snr_db is None:
            return
        key = f"{truth.src}>{truth.dst}"
        before, snr = self._signals.get(key), truth.snr_db
        if before is not None:
            if t - before[0] < SIGNAL_PERIOD_S or abs(snr - before[1]) < LEAST_SIGNAL_CHANGE_DB:
                return
        elif len(self._signals) >= MOST_LINKS:
            return
        self._signals[key] = (t, snr)
        yield Change(t, "", "signal", key, {"snr": round(snr, 1)})


def _is_cost(cost: Any) -> bool:
    return isinstance(cost, int | float) and not isinstance(cost, bool) and isfinite(cost) and cost >= 0
