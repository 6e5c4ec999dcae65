"""From finished cells to the numbers of a figure: means, and ratios to k=1, with 95 % intervals.

Ratios are paired: only seeds whose runs are valid with both numbers of replicas count.
"""

from collections.abc import Collection, Mapping, Sequence
from itertools import combinations
from statistics import fmean
from typing import Any, NamedTuple

from benchmarks.paper.cells import Kept, KeptCell, key_of
from benchmarks.paper.figures import OFFERED, THROUGHPUT, PaperFigure
from benchmarks.shared.measured import percentile
from orchestrator.apps.dataflow.paper import GOODPUT, REPLICAS
from orchestrator.planning.sweep import Cell
from orchestrator.results.comparison import Comparison, Interval, compare, mean_interval, pairs_by_seed

SHARES = (0.05, 0.25, 0.5, 0.75, 0.95)
"""The percentiles that are drawn over the runs."""


class Row(NamedTuple):
    """One point of a figure. ``gain``: compared with k=1; ``stated``: the paper's ratio."""

    label: str
    k: int
    runs: int
    mean: float | None
    interval: Interval | None
    gain: Comparison | None
    stated: float | None
    percentiles: tuple[float, ...]
    goodput: float | None
    offered: float | None
    throughput: float | None

    @property
    def name(self) -> str:
        return f"{self.label}, k={self.k}"

    @property
    def ratio(self) -> float | None:
        return None if self.gain is None else self.gain.ratio_of_means

    @property
    def agrees(self) -> bool | None:
        """Whether the paper's ratio is within our interval; None if there is nothing to compare."""
        return self.agrees_with(_interval(self))

    def agrees_with(self, within: Interval | None) -> bool | None:
        """The same for another interval of ours."""
        return None if within is None or self.stated is None else within.low <= self.stated <= within.high


class Summary(NamedTuple):
    """What a figure shows in one variant on one backend. ``planned``: the runs that it needs. ``across``: by
    k, the last value of the figure's factor compared with the first. ``by_place``: the valid runs by label,
    k and seed.
    """

    variant: str
    backend: str
    rows: tuple[Row, ...]
    cells: tuple[KeptCell, ...]
    planned: int
    across: Mapping[int, Comparison] = {}
    by_place: Mapping[tuple[str, int, int], KeptCell] = {}

    @property
    def valid(self) -> int:
        return sum(cell.is_valid for cell in self.cells)

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(row.label for row in self.rows))

    def of(self, label: str) -> tuple[Row, ...]:
        return tuple(row for row in self.rows if row.label == label)


def summary(
    figure: PaperFigure,
    variant: str,
    backend: str,
    cells: Sequence[Cell],
    kept: Kept,
    seeds: Collection[int] = (),
) -> Summary:
    """``cells``: the figure's, with one seed. All kept runs count; ``seeds`` were asked for, too."""
    found: list[KeptCell] = []
    runs: dict[tuple[str, int], dict[int, KeptCell]] = {}
    values: dict[tuple[str, int], Any] = {}
    for cell in cells:
        place = figure.label(cell.factors), int(cell.factors[REPLICAS])
        values[place] = figure.value(cell.factors)
        of_cell = kept.of(key_of(cell.experiment))
        found += of_cell
        runs[place] = {each.seed: each for each in of_cell if each.is_valid}
    rows = (_row(figure, place, value, runs[place], runs[place[0], 1]) for place, value in values.items())
    planned = len(cells) * len({*seeds, *(each.seed for each in found)})
    across = _across(figure, runs) if figure.across else {}
    by_place = {(*place, seed): run for place, of in runs.items() for seed, run in of.items()}
    return Summary(variant, backend, tuple(rows), tuple(found), planned, across, by_place)


def _across(
    figure: PaperFigure, runs: Mapping[tuple[str, int], Mapping[int, KeptCell]]
) -> dict[int, Comparison]:
    *_, last = labels = list(figure.by_words.values())
    ours = {k: _by_seed(of, figure.metric) for (label, k), of in runs.items() if label == last}
    base = {k: _by_seed(of, figure.metric) for (label, k), of in runs.items() if label == labels[0]}
    return {k: compare(pairs) for k in ours if (pairs := pairs_by_seed(ours[k], base[k]))}


def _row(
    figure: PaperFigure,
    place: tuple[str, int],
    value: Any,
    runs: Mapping[int, KeptCell],
    single: Mapping[int, KeptCell],
) -> Row:
    label, k = place
    ours, base = _by_seed(runs, figure.metric), _by_seed(single, figure.metric)
    values = sorted(each for each in ours.values() if each is not None)
    pairs = pairs_by_seed(ours, base)
    return Row(
        label,
        k,
        len(runs),
        fmean(values) if values else None,
        mean_interval(values),
        compare(pairs) if pairs and k > 1 else None,
        figure.stated.get((value, k)),
        tuple(percentile(values, share) for share in SHARES) if values else (),
        *(_mean(runs, name) for name in (GOODPUT, OFFERED, THROUGHPUT)),
    )


def _by_seed(runs: Mapping[int, KeptCell], metric: str) -> dict[object, float | None]:
    return {seed: cell.figures.get(metric) for seed, cell in runs.items()}


def _mean(runs: Mapping[int, KeptCell], metric: str) -> float | None:
    values = [value for value in _by_seed(runs, metric).values() if value is not None]
    return fmean(values) if values else None


def agreement(found: Sequence[Summary]) -> tuple[int, int]:
    """Returns in how many ratios to k=1 the intervals of two backends overlap, and how many both have."""
    overlaps = [
        max(ours.low, others.low) <= min(ours.high, others.high)
        for one, other in combinations(found, 2)
        if one.variant == other.variant
        for row, same in zip(one.rows, other.rows, strict=True)
        if (ours := _interval(row)) is not None and (others := _interval(same)) is not None
    ]
    return sum(overlaps), len(overlaps)


def _interval(row: Row) -> Interval | None:
    return None if row.gain is None else row.gain.ratio_of_means_95


def paired_backends(figure: PaperFigure, found: Sequence[Summary]) -> dict[str, Comparison]:
    """Compares namespaces with virtual time, by variant: runs with the same parameters and seed, which have
    the same movements. All places of a figure count together.
    """
    runs = {(each.variant, each.backend): _of_places(each, figure.metric) for each in found}
    return {
        variant: compare(pairs)
        for (variant, backend), ours in runs.items()
        if backend == "netns" and (pairs := pairs_by_seed(ours, runs.get((variant, "sim"), {})))
    }


def _of_places(found: Summary, metric: str) -> dict[object, float | None]:
    return {place: run.figures.get(metric) for place, run in found.by_place.items()}


def in_json(figure: PaperFigure, found: Sequence[Summary]) -> dict[str, Any]:
    """Returns by variant and backend: the gains beside the paper's, the means, and the factor's own gain."""
    places = [f"{each.variant}, {each.backend}" for each in found]
    gains = dict(zip(places, map(_gains, found), strict=True))
    means = {
        place: {row.name: row.mean for row in each.rows} for place, each in zip(places, found, strict=True)
    }
    values: dict[str, Any] = {figure.key: gains, f"fig{figure.number}_mean": means}
    agree, both = agreement(found)
    if both:
        values[f"fig{figure.number}_backends_agree"] = f"{agree} of {both}"
    if paired := paired_backends(figure, found):
        values[f"fig{figure.number}_netns_over_sim"] = {name: each._asdict() for name, each in paired.items()}
    if figure.across:
        values[f"fig{figure.number}_across"] = {
            place: {f"k={k}": gain._asdict() for k, gain in each.across.items()}
            for place, each in zip(places, found, strict=True)
        }
    return values


def _gains(found: Summary) -> dict[str, Any]:
    return {
        row.name: {
            "ours": row.ratio,
            "interval_95": row.gain.ratio_of_means_95,
            "mean_of_ratios": row.gain.mean_of_ratios,
            "paper": row.stated,
            "agrees": row.agrees,
            "pairs": row.gain.pairs,
        }
        for row in found.rows
        if row.gain is not None
    }
