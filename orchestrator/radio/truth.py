"""Ground truth: the true links, the cheapest routes over them, and their record for the analysis.

If nodes run no routing daemon, routes and costs come from here, marked ``source="ground_truth"``.
"""

from collections.abc import Iterable, Mapping
from heapq import heappop, heappush
from math import isfinite
from pathlib import Path
from typing import IO, Any

from msgspec import Struct
from msgspec.json import Encoder

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


class LinkUse(Struct, frozen=True):
    """How much a link was used during an interval, and the expected delivery of a full-size
    frame at its end.
    """

    source: str
    destination: str
    attempted: int
    delivered: int
    expected: float
    snr_db: float | None = None
    """None: the radio has no noise."""


class TruthRecorder:
    """Writes ``positions.jsonl`` (samples), ``links.jsonl`` (changes), ``deliveries.jsonl`` and
    ``airtime.jsonl`` (sums since the last sample).
    """

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._positions = (directory / "positions.jsonl").open("wb")
        self._links = (directory / "links.jsonl").open("wb")
        self._deliveries = (directory / "deliveries.jsonl").open("wb")
        self._airtime_file = directory / "airtime.jsonl"
        self._airtime: IO[bytes] | None = None
        self._known: Links = {}
        self._sent_ns: Mapping[str, int] = {}

    def positions(self, t_ns: int, positions: Mapping[str, tuple[float, float]]) -> None:
        _write(
            self._positions,
            [
                {"t_ns": t_ns, "node": node, "x": round(x, 3), "y": round(y, 3)}
                for node, (x, y) in positions.items()
            ],
        )
        self._flush()

    def links(self, t_ns: int, links: Links) -> None:
        """``links`` must not change afterwards: they are compared with the next ones."""
        before, self._known = self._known, links
        if links is before:
            return
        for src in sorted({*before, *links}):
            old, new = before.get(src, _NO_PEERS), links.get(src, _NO_PEERS)
            if new == old:
                continue
            changed = sorted({dst for dst, _ in old.items() ^ new.items()})
            _write(
                self._links,
                [
                    {"t_ns": t_ns, "src": src, "dst": dst, "up": dst in new, "cost": new.get(dst)}
                    for dst in changed
                ],
            )

    def deliveries(self, t_ns: int, uses: Iterable[LinkUse]) -> None:
        _write(
            self._deliveries,
            [
                {
                    "t_ns": t_ns,
                    "src": use.source,
                    "dst": use.destination,
                    "attempted": use.attempted,
                    "delivered": use.delivered,
                    "expected": round(use.expected, 4),
                    # The SNR at a node whose radio is off is -inf, which JSON cannot express.
                    "snr_db": None
                    if use.snr_db is None or not isfinite(use.snr_db)
                    else round(use.snr_db, 2),
                }
                for use in uses
            ],
        )
        self._flush()

    def airtimes(self, t_ns: int, sent_ns: Mapping[str, int]) -> None:
        """``sent_ns``: how long each node has sent so far; of no node: the radio does not count it, and there
        is no file. What was nothing since the last call is not written.
        """
        if not sent_ns:
            return
        if self._airtime is None:
            self._airtime = self._airtime_file.open("wb")
        before, self._sent_ns = self._sent_ns, dict(sent_ns)
        grown = {node: total - before.get(node, 0) for node, total in sent_ns.items()}
        _write(
            self._airtime,
            [{"t_ns": t_ns, "node": node, "sent_ns": each} for node, each in grown.items() if each],
        )
        self._flush()

    def close(self) -> None:
        for file in self._files:
            file.close()

    def _flush(self) -> None:
        """Lets whoever follows the run read what there is; called once for each sample."""
        for file in self._files:
            file.flush()

    @property
    def _files(self) -> tuple[IO[bytes], ...]:
        always = self._positions, self._links, self._deliveries
        return always if self._airtime is None else (*always, self._airtime)


_NO_PEERS: Mapping[str, float] = {}
_encode_lines = Encoder().encode_lines


def _write(file: IO[bytes], records: list[dict[str, Any]]) -> None:
    if records:
        file.write(_encode_lines(records))
