"""Predicts, without sending a frame, which connectivity and delivery applications can expect.

It considers the links that routing would use, and assumes that nobody else sends.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from orchestrator.mobility.statistics import sample_positions
from orchestrator.model.trace import Trace
from orchestrator.radio.channel import distances, received_dbm
from orchestrator.radio.from_spec import air_settings
from orchestrator.radio.path_loss.base import Matrix, losses_at
from orchestrator.radio.settings import Mac, Radio
from orchestrator.radio.survey import FULL_SIZE, WORST_LINK, delivery, exchange
from orchestrator.spec.contacts import ContactRadio
from orchestrator.spec.pathloss import PathLossModel
from orchestrator.spec.radio import DiscRadio, Radio80211b
from orchestrator.spec.topology import Topology

Flags = npt.NDArray[np.bool_]

DELIVERIES = (0.9, 0.5, 0.1)
_MOST_CELLS = 4_000_000
"""Limit of samples × nodes × nodes; that much takes about a second."""
_GRID_M = np.geomspace(0.1, 1e6, 40_000)
_CURVE_POINTS = 241
_BEYOND = 1.25
"""Length of a drawn curve, in radio ranges."""


@dataclass(frozen=True)
class LinkOutlook:
    source: str
    destination: str
    distance_m: float
    snr_db: float | None
    """None if the radio model has no noise."""
    expected_delivery: float


@dataclass(frozen=True)
class PairOutlook:
    """The outlook from the node of a source to the node of a sink, over any number of hops."""

    source: str
    source_node: str
    sink: str
    sink_node: str
    connected: float
    """The share of time with a path."""
    hops: dict[int, float]
    """Share of the connected time, by number of hops on the shortest path."""


@dataclass(frozen=True)
class Outlook:
    ranges_m: dict[float, float | None]
    """The distance at which the expected delivery of a full frame falls below the key; None: not within 1000
    km, or distance does not matter.
    """
    samples: int
    step_s: float
    mean_degree: float
    isolated: dict[str, float]
    """Nodes that at times have no neighbour, and the share of that time."""
    pairs: tuple[PairOutlook, ...]
    links: tuple[LinkOutlook, ...]
    """Every pair with a link; only if no node moves."""
    static: bool

    @property
    def warnings(self) -> list[str]:
        if self.mean_degree == 0:
            return [
                "nobody is ever in range of anybody: more power, a longer range or a smaller area is needed"
            ]
        return [
            f"{pair.source} ({pair.source_node}) and {pair.sink} ({pair.sink_node}) are connected only "
            f"{pair.connected:.0%} of the time: little can arrive, whatever else is done"
            for pair in self.pairs
            if pair.connected < 0.5
        ]


End = tuple[str, str]
"""The name of the traffic's end, and its node."""


def look_ahead(topology: Topology, trace: Trace, seconds: float, pairs: Iterable[tuple[End, End]]) -> Outlook:
    """Computes the outlook. ``trace`` lists nodes in the topology's order. Not for contacts: their plan says
    it.
    """
    air = _air(topology)
    nodes = list(trace.paths)
    static = all(len({(x, y) for _, x, y in path}) == 1 for path in trace.paths.values())
    static = not air.changes and (static or air.is_fixed)
    most = max(_MOST_CELLS // len(nodes) ** 2, 1)
    samples = 1 if static else max(min(round(seconds), most), 1)
    step = seconds / samples if samples > 1 else 0.0
    times = step * np.arange(samples, dtype=np.float64)
    distance = distances(sample_positions(trace, times))
    snr_db = air.snr_db(distance, times)
    expected, links = air.links(distance, snr_db)
    for wire in topology.wire_links():
        one, other = nodes.index(wire.a), nodes.index(wire.b)
        links[:, one, other] = links[:, other, one] = True
        expected[:, one, other] = expected[:, other, one] = 1.0
    alone = (~links.any(axis=2)).mean(axis=0)
    return Outlook(
        ranges_m={share: air.reach(share) for share in DELIVERIES},
        samples=samples,
        step_s=step,
        mean_degree=float(links.sum(axis=2).mean()),
        isolated={node: float(share) for node, share in zip(nodes, alone, strict=True) if share > 0},
        pairs=tuple(_pair(links, nodes, source, sink) for source, sink in pairs),
        links=_links(nodes, distance, snr_db, expected, links) if static else (),
        static=static,
    )


@dataclass(frozen=True)
class Reach:
    """Expected delivery of full frames at each distance, without interference."""

    distances_m: list[float]
    expected: list[float]
    snr_db: list[float] | None
    """None if the radio model has no noise; -inf if nothing arrives."""
    ranges_m: dict[float, float]
    """The distance at which the expected delivery falls below the key."""


def reach(topology: Topology) -> Reach | None:
    """Returns the reach; None if distance does not matter or nothing is out of range."""
    if isinstance(topology.radio, ContactRadio):
        return None
    air = _air(topology)
    ranges = {share: found for share in DELIVERIES if (found := air.reach(share)) is not None}
    if not ranges:
        return None
    distance = np.linspace(0.0, _BEYOND * max(ranges.values()), _CURVE_POINTS)[1:]
    expected, snr_db = air.over(distance)
    return Reach(distance.tolist(), expected.tolist(), None if snr_db is None else snr_db.tolist(), ranges)


def ranges_in_words(ranges_m: Mapping[float, float | None]) -> str:
    known = {share: found for share, found in ranges_m.items() if found is not None}
    if not known:
        return "does not depend on distance"
    if len({*known.values()}) == 1:
        return f"{next(iter(known.values())):.0f} m"
    parts = [f"{share:.0%} up to {found:.0f} m" for share, found in known.items()]
    return f"full frames arrive: {', '.join(parts)}"


class _DiscAir:
    is_fixed = False
    changes = False

    def __init__(self, range_m: float) -> None:
        self._range_m = range_m

    def reach(self, share: float) -> float | None:
        return self._range_m

    def over(self, distance: Matrix) -> tuple[Matrix, Matrix | None]:
        return (distance <= self._range_m).astype(np.float64), None

    def links(self, distance: Matrix, snr_db: Matrix | None) -> tuple[Matrix, Flags]:
        links = (distance <= self._range_m) & ~np.eye(distance.shape[-1], dtype=bool)
        return links.astype(np.float64), links

    def snr_db(self, distance: Matrix, times: Matrix) -> Matrix | None:
        return None


class _DcfAir:
    def __init__(self, radio: Radio, mac: Mac, model: PathLossModel) -> None:
        self._radio, self._mac = radio, mac
        self.is_fixed = not model.follows_distance and not model.changes
        self.changes = model.changes

    def reach(self, share: float) -> float | None:
        if self.is_fixed or self.changes:
            return None
        below = np.flatnonzero(self._expected(self._snr_db(_GRID_M)) < share)
        return float(_GRID_M[below[0]]) if below.size else None

    def over(self, distance: Matrix) -> tuple[Matrix, Matrix | None]:
        snr_db = self._snr_db(distance)
        return self._expected(snr_db), snr_db

    def links(self, distance: Matrix, snr_db: Matrix | None) -> tuple[Matrix, Flags]:
        assert snr_db is not None
        expected = self._expected(snr_db)
        return expected, exchange(self._radio, self._mac, expected, snr_db) >= WORST_LINK

    def snr_db(self, distance: Matrix, times: Matrix) -> Matrix | None:
        if self.is_fixed or self.changes:
            # Losses from a file are looked up for each sample.
            each = zip(distance, times.tolist(), strict=True)
            snr_db = np.stack([self._snr_db(sample, t) for sample, t in each])
        else:
            snr_db = self._snr_db(distance)
        itself = np.arange(snr_db.shape[-1])
        snr_db[..., itself, itself] = -np.inf
        return snr_db

    def _snr_db(self, distance: Matrix, t: float = 0.0) -> Matrix:
        path_loss = losses_at(self._radio.path_loss, t)
        return received_dbm(self._radio, distance, path_loss) - self._radio.noise_dbm

    def _expected(self, snr_db: Matrix) -> Matrix:
        length = FULL_SIZE + self._radio.reception.counted_overhead
        return delivery(self._radio, self._mac.unicast_rate, length, snr_db)


def _air(topology: Topology) -> _DiscAir | _DcfAir:
    radio = topology.radio
    if isinstance(radio, DiscRadio):
        return _DiscAir(radio.range)
    assert isinstance(radio, Radio80211b), "contacts have no channel"
    choice, mac = air_settings(topology)
    return _DcfAir(choice.radio(), mac, radio.pathloss)


def _links(
    nodes: list[str], distance: Matrix, snr_db: Matrix | None, expected: Matrix, links: Flags
) -> tuple[LinkOutlook, ...]:
    return tuple(
        LinkOutlook(
            nodes[i],
            nodes[j],
            float(distance[0, i, j]),
            None if snr_db is None else float(snr_db[0, i, j]),
            float(expected[0, i, j]),
        )
        for i, j in np.argwhere(links[0]).tolist()
    )


def _pair(links: Flags, nodes: list[str], source: End, sink: End) -> PairOutlook:
    hops = _hops(links, nodes.index(source[1]), nodes.index(sink[1]))
    found, counts = np.unique(hops[hops >= 0], return_counts=True)
    connected = int(counts.sum())
    shares = {int(h): float(count) / connected for h, count in zip(found, counts, strict=True)}
    return PairOutlook(*source, *sink, connected / len(hops), shares)


def _hops(links: Flags, start: int, end: int) -> npt.NDArray[np.int64]:
    """Returns the hops of the shortest path in each sample; -1 if there is none."""
    reached = np.zeros(links.shape[:2], dtype=bool)
    reached[:, start] = True
    hops = np.where(reached[:, end], 0, -1)
    for count in range(1, links.shape[1]):
        wider = reached | (reached[:, :, None] & links).any(axis=1)
        hops[wider[:, end] & (hops < 0)] = count
        if (wider == reached).all() or (hops >= 0).all():
            break
        reached = wider
    return hops
