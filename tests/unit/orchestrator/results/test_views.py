"""How the report pools the latencies of runs that differ only in their seed."""

from statistics import quantiles

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.results.views import pooled

STEPS = 200


def curve_of(values: list[float]) -> list[float]:
    # Sorted: interpolation rounds, so that equal neighbours may come out in the wrong order.
    return sorted([min(values), *quantiles(values, n=STEPS, method="inclusive"), max(values)])


def test_two_groups_far_apart_are_not_averaged() -> None:
    fast, slow = [0.1 + i / 10_000 for i in range(900)], [5.0 + i / 1000 for i in range(100)]
    both = pooled([(curve_of(fast), 900), (curve_of(slow), 100)])
    assert len(both) == STEPS + 1
    assert (both[0], both[-1]) == (fast[0], slow[-1])
    assert both[STEPS // 2] < 0.2
    assert both[round(0.89 * STEPS)] < 0.2
    assert both[round(0.95 * STEPS)] == pytest.approx(5.05, abs=0.01)


@given(st.lists(st.lists(st.floats(0.001, 100), min_size=2, max_size=50), min_size=2, max_size=4))
def test_it_is_a_distribution_between_the_extremes(groups: list[list[float]]) -> None:
    both = pooled([(curve_of(group), len(group)) for group in groups])
    assert len(both) == STEPS + 1
    assert both == sorted(both)
    assert both[0] == pytest.approx(min(map(min, groups)))
    assert both[-1] == pytest.approx(max(map(max, groups)))
