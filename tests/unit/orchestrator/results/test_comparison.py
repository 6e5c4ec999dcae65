"""Comparisons of paired runs: both ratios, how many pairs, 95 % intervals, and when there are none."""

import math
import random

import pytest

from orchestrator.results.comparison import (
    Interval,
    compare,
    effect_in_words,
    mean_interval,
    pairs_by_seed,
    t95,
)


def test_both_ratios_are_named_and_differ() -> None:
    found = compare([(2.0, 1.0), (10.0, 9.0), (12.0, 12.0)])
    assert found.pairs == found.ratios == 3
    assert found.ratio_of_means == pytest.approx(24 / 22)
    assert found.mean_of_ratios == pytest.approx((2 + 10 / 9 + 1) / 3)
    assert found.is_result


def test_the_interval_of_a_mean_is_students() -> None:
    # Mean 3, standard deviation 1.5811, t(4) = 2.776.
    assert mean_interval([1, 2, 3, 4, 5]) == pytest.approx((3 - 1.963, 3 + 1.963), abs=1e-3)


def test_quantiles_of_t() -> None:
    assert t95(1) == 12.706
    assert t95(30) == 2.042
    assert t95(31) == pytest.approx(2.0395, abs=2e-3)
    assert t95(120) == pytest.approx(1.9799, abs=1e-3)
    assert [t95(n) for n in range(1, 60)] == sorted((t95(n) for n in range(1, 60)), reverse=True)
    with pytest.raises(ValueError, match="two values"):
        t95(0)


@pytest.mark.parametrize("pairs", [[], [(2.0, 1.0)], [(2.0, 1.0), (3.0, 1.0)]])
def test_one_or_two_pairs_are_no_result(pairs: list[tuple[float, float]]) -> None:
    found = compare(pairs)
    assert not found.is_result
    assert found.ratio_of_means_95 is None and found.mean_of_ratios_95 is None


def test_a_pair_whose_base_has_nothing_counts_in_the_ratio_of_means_only() -> None:
    found = compare([(2.0, 0.0), (2.0, 1.0), (2.0, 1.0), (2.0, 1.0)])
    assert (found.pairs, found.ratios) == (4, 3)
    assert found.ratio_of_means == pytest.approx(8 / 3)
    assert found.mean_of_ratios == 2.0
    nothing = compare([(1.0, 0.0)] * 4)
    assert (nothing.ratio_of_means, nothing.mean_of_ratios, nothing.ratio_of_means_95) == (None, None, None)
    assert compare([(0.0, 1.0)] * 4).ratio_of_means == 0.0


def test_equal_gains_leave_no_doubt() -> None:
    found = compare([(2.0 * base, base) for base in (1.0, 3.0, 7.0)])
    assert found.ratio_of_means_95 == pytest.approx((2.0, 2.0))
    assert found.mean_of_ratios_95 == pytest.approx((2.0, 2.0))


@pytest.mark.parametrize("many", [3, 5, 30])
def test_intervals_cover_the_truth_about_as_often_as_they_say(many: int) -> None:
    draw = random.Random(many)
    truth = 1.7 * math.exp(0.3**2 / 2)
    inside = [0, 0]
    for _ in range(400):
        bases = [math.exp(draw.gauss(0, 0.5)) for _ in range(many)]
        found = compare([(base * 1.7 * math.exp(draw.gauss(0, 0.3)), base) for base in bases])
        intervals = (found.ratio_of_means_95 or Interval(0, 0), found.mean_of_ratios_95 or Interval(0, 0))
        for index, interval in enumerate(intervals):
            inside[index] += interval.low <= truth <= interval.high
    assert min(inside) >= 0.9 * 400


def test_bootstrap_intervals_are_repeatable_and_lie_about_the_ratio() -> None:
    pairs = [(3.0, 1.0), (5.0, 2.0), (4.0, 2.0), (9.0, 3.0), (8.0, 4.0)]
    found, again = compare(pairs), compare(list(pairs))
    assert found == again
    low, high = found.ratio_of_means_bootstrap_95 or Interval(0, 0)
    assert 2.0 < low < (found.ratio_of_means or 0) < high < 3.0
    low, high = found.mean_of_ratios_bootstrap_95 or Interval(0, 0)
    assert 2.0 <= low < (found.mean_of_ratios or 0) < high <= 3.0
    assert compare(pairs[:2]).ratio_of_means_bootstrap_95 is None
    # A resample could have nothing but pairs without a base.
    nothing = compare([*pairs, (1.0, 0.0)])
    assert nothing.ratio_of_means_bootstrap_95 is None and nothing.mean_of_ratios_bootstrap_95 is not None


def test_the_effect_is_in_standard_deviations_of_the_pairs() -> None:
    ratios = (math.e, math.e**2, math.e**3)  # logarithms 1, 2, 3: mean 2, standard deviation 1
    assert compare([(ratio, 1.0) for ratio in ratios]).effect == pytest.approx(2.0)
    assert compare([(1.0, ratio) for ratio in ratios]).effect == pytest.approx(-2.0)
    assert compare([(2.0, 1.0)] * 4).effect is None  # nothing scatters
    assert compare([(0.0, 1.0), (2.0, 1.0), (3.0, 1.0)]).effect is None
    words = [effect_in_words(effect) for effect in (None, 0.1, -0.3, 0.6, -2.0)]
    assert words == [None, "no", "small", "medium", "large"]


def test_pairs_are_made_by_seed() -> None:
    ours = {1: 2.0, 2: 4.0, 3: None, 4: 5.0}
    assert pairs_by_seed(ours, {2: 1.0, 1: 3.0, 3: 1.0}) == [(2.0, 3.0), (4.0, 1.0)]
