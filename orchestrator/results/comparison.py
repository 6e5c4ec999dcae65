"""Compares two sets of runs that are paired by seed: how many times as much one has, and how sure that is.

Two ratios have names of their own, because they differ: the *ratio of means* says what carries more in all;
the *mean of ratios* says what a pair gains on average, and one pair with a small denominator can make it
large. Pure; the same pairs give the same numbers.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

ENOUGH_PAIRS = 3
"""With fewer, nothing is called a result: no interval can be given that means anything."""
_NO_IDEA = 20.0
"""A logarithm beyond which an interval says nothing."""
_ALIKE = 1e-9
"""A standard deviation that is rounding error."""

# Two-sided 95 % quantiles of Student's t, for 1 … 30 degrees of freedom; beyond, by expansion around 1.96.
_T95 = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
    *(2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)

RESAMPLES = 4000
BOOTSTRAP_SEED = 16
"""Fixed, so that the same pairs give the same interval, whoever asks and how often."""

METHODS = (
    "Pairs are runs of the same seed. 95 % intervals use Student's t over the pairs: of the ratio of means "
    "on its logarithm, by how far each pair is from that ratio; of the mean of ratios on the ratios. "
    "summary.json and rove compare also have bootstrap intervals, which assume no distribution and are too "
    "narrow with few pairs. The effect is Cohen's d of the pairs: the mean of the ratios' logarithms over "
    "their standard deviation; 0.2 is small, 0.5 medium, 0.8 large."
)
"""How the intervals are made, in words for readers."""

_SIZES = ((0.2, "no"), (0.5, "small"), (0.8, "medium"), (math.inf, "large"))
"""Cohen's words for an effect below each limit."""


class Interval(NamedTuple):
    low: float
    high: float


class Comparison(NamedTuple):
    """``pairs``: how many pairs the ratio of means rests on. ``ratios``: how many of them have a ratio of
    their own; a pair whose base has nothing has none. Intervals are None if there are too few.

    ``effect``: Cohen's d of the pairs, on logarithms of ratios: how many of their standard deviations the
    typical ratio is away from 1. None if there are too few pairs, if one has nothing, or if all are alike.
    """

    pairs: int
    ratio_of_means: float | None
    ratio_of_means_95: Interval | None
    ratios: int
    mean_of_ratios: float | None
    mean_of_ratios_95: Interval | None
    ratio_of_means_bootstrap_95: Interval | None = None
    mean_of_ratios_bootstrap_95: Interval | None = None
    effect: float | None = None

    @property
    def is_result(self) -> bool:
        return self.pairs >= ENOUGH_PAIRS


def t95(degrees: int) -> float:
    """Returns the quantile of Student's t for a two-sided interval of 95 %."""
    if degrees < 1:
        raise ValueError("an interval needs at least two values")
    if degrees <= len(_T95):
        return _T95[degrees - 1]
    z = 1.959964
    return z + (z**3 + z) / (4 * degrees) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * degrees**2)


def mean_interval(values: Sequence[float]) -> Interval | None:
    """Returns the 95 % t interval of the mean; None with fewer than ``ENOUGH_PAIRS`` values."""
    if len(values) < ENOUGH_PAIRS:
        return None
    middle = statistics.fmean(values)
    half = t95(len(values) - 1) * statistics.stdev(values) / math.sqrt(len(values))
    return Interval(middle - half, middle + half)


def pairs_by_seed(
    ours: Mapping[Any, float | None], base: Mapping[Any, float | None]
) -> list[tuple[float, float]]:
    """Returns both values of each seed that has both, in the order of ``ours``."""
    found = ((value, base.get(seed)) for seed, value in ours.items())
    return [(value, other) for value, other in found if value is not None and other is not None]


def compare(pairs: Sequence[tuple[float, float]]) -> Comparison:
    """Compares the first values of the pairs with the second ones."""
    ratios = [ours / base for ours, base in pairs if base]
    return Comparison(
        len(pairs),
        _ratio_of_means(pairs),
        _ratio_interval(pairs),
        len(ratios),
        statistics.fmean(ratios) if ratios else None,
        mean_interval(ratios),
        _resampled(pairs),
        _resampled([(ratio, 1.0) for ratio in ratios]),
        _effect(pairs),
    )


def further(found: Comparison) -> dict[str, Any]:
    """Returns the bootstrap intervals and the effect, as documents have them."""
    return {
        "ratio_of_means_bootstrap_95": ends(found.ratio_of_means_bootstrap_95),
        "mean_of_ratios_bootstrap_95": ends(found.mean_of_ratios_bootstrap_95),
        "effect": None if found.effect is None else round(found.effect, 9),
        "effect_size": effect_in_words(found.effect),
    }


def ends(interval: Interval | None) -> list[float] | None:
    return None if interval is None else [round(end, 9) for end in interval]


def effect_in_words(effect: float | None) -> str | None:
    """Returns Cohen's word for an effect, whichever direction it has; None if it is not known."""
    return None if effect is None else next(word for limit, word in _SIZES if abs(effect) < limit)


def _effect(pairs: Sequence[tuple[float, float]]) -> float | None:
    if len(pairs) < ENOUGH_PAIRS or any(ours <= 0 or base <= 0 for ours, base in pairs):
        return None
    logarithms = [math.log(ours / base) for ours, base in pairs]
    spread = statistics.stdev(logarithms)
    return statistics.fmean(logarithms) / spread if spread > _ALIKE else None


def _resampled(pairs: Sequence[tuple[float, float]]) -> Interval | None:
    """Returns the percentile bootstrap interval of the ratio of means: pairs are drawn again and again, with
    replacement. None with fewer than ``ENOUGH_PAIRS`` pairs, or if a base may be 0.
    """
    if len(pairs) < ENOUGH_PAIRS or any(base <= 0 for _, base in pairs):
        return None
    import numpy as np

    ours, base = np.asarray(pairs, dtype=float).T
    chosen = _draws(len(pairs))
    low, high = np.percentile(ours[chosen].sum(axis=1) / base[chosen].sum(axis=1), (2.5, 97.5))
    return Interval(float(low), float(high))


@lru_cache(maxsize=8)
def _draws(count: int) -> Any:
    """Returns the indices of all resamples. The generator is the one whose numbers NumPy keeps for ever."""
    import numpy as np

    return np.random.RandomState(BOOTSTRAP_SEED).randint(0, count, (RESAMPLES, count))


def _ratio_of_means(pairs: Sequence[tuple[float, float]]) -> float | None:
    below = math.fsum(base for _, base in pairs)
    return math.fsum(ours for ours, _ in pairs) / below if below else None


def _ratio_interval(pairs: Sequence[tuple[float, float]]) -> Interval | None:
    """Returns the interval of the ratio of means: how far the pairs are from that ratio, on its logarithm, so
    that it never falls below 0.
    """
    ratio = _ratio_of_means(pairs)
    if len(pairs) < ENOUGH_PAIRS or not ratio:
        return None
    off = statistics.stdev(ours - ratio * base for ours, base in pairs) / math.sqrt(len(pairs))
    share = t95(len(pairs) - 1) * off / statistics.fmean(ours for ours, _ in pairs)
    return Interval(ratio * math.exp(-share), ratio * math.exp(share)) if share < _NO_IDEA else None
