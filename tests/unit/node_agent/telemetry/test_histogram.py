"""Histograms of durations count each observation once, and remember the slowest of late."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from node_agent.telemetry.histogram import EXEMPLAR_NS, SLOT_NS, DurationHistogram

pytestmark = pytest.mark.unit

MS = 1_000_000


def test_an_edge_belongs_to_the_bucket_below_it() -> None:
    histogram = DurationHistogram((0.001, 0.01))
    for duration in (0, MS, MS + 1, 10 * MS, 10 * MS + 1):
        histogram.add(duration, ("a", 0), 0)
    assert histogram.sample("x", ()).counts == (2, 2, 1)


def test_a_duration_below_zero_counts_as_zero() -> None:
    histogram = DurationHistogram((0.001,))
    histogram.add(-5 * MS, ("a", 0), 0)
    histogram.add_equal(-5 * MS, 2)
    sample = histogram.sample("x", ())
    assert (sample.value, sample.counts) == (0.0, (3, 0))


@given(st.integers(-(10**9), 10**11), st.lists(st.integers(-(10**10), 10**10), min_size=1, max_size=20))
def test_neighbours_count_like_one_after_the_other(duration: int, shorter: list[int]) -> None:
    together, alone = DurationHistogram(), DurationHistogram()
    together.add_all(duration, shorter, ("a", 5), 1)
    for place, less in enumerate(shorter):
        alone.add(duration - less, ("a", 5 + place), 1)
    assert together.sample("x", ()).counts == alone.sample("x", ()).counts
    assert together.sample("x", ()).value == pytest.approx(alone.sample("x", ()).value)
    labels = {"of": "x"}
    one, other = together.sample("x", (), labels).exemplar, alone.sample("x", (), labels).exemplar
    assert one is not None and other is not None and one.value == other.value


def test_the_slowest_is_replaced_by_a_slower_one_or_after_ten_seconds() -> None:
    histogram = DurationHistogram()
    histogram.add(50 * MS, ("a", 1), 0)
    histogram.add(20 * MS, ("a", 2), EXEMPLAR_NS)
    assert histogram.slowest == ("a", 1)
    histogram.add(60 * MS, ("a", 3), EXEMPLAR_NS)
    assert histogram.slowest == ("a", 3)
    histogram.add(1 * MS, ("a", 4), 2 * EXEMPLAR_NS + 1)
    assert histogram.slowest == ("a", 4)


@given(st.lists(st.tuples(st.integers(0, 3_000), st.integers(0, 500)), min_size=1, max_size=200))
def test_the_exemplar_is_the_slowest_of_the_last_ten_seconds(seen: list[tuple[int, int]]) -> None:
    """``seen``: milliseconds since the one before, and how long it took."""
    histogram = DurationHistogram()
    t_ns, past = 0, []
    for number, (pause, took) in enumerate(seen):
        t_ns += pause * MS
        past.append((took * MS, t_ns, number))
        histogram.add(took * MS, ("a", number), t_ns)
        exemplar = histogram.sample("x", (), {}).exemplar
        assert exemplar is not None
        window = [each for each in past if each[1] >= t_ns - EXEMPLAR_NS]
        for_sure = [each for each in window if each[1] >= t_ns - EXEMPLAR_NS + SLOT_NS]
        found = (round(exemplar.value * 1e9), exemplar.t_ns, histogram.slowest[1])
        assert found in window and found[0] >= max(each[0] for each in for_sure)


def test_few_are_held_though_each_is_faster_than_the_one_before() -> None:
    """As after a partition, when what waited arrives."""
    histogram = DurationHistogram()
    for number in range(50_000):
        histogram.add(60_000 * MS - number, ("a", number), number * MS)
    assert len(histogram._slowest) <= EXEMPLAR_NS // SLOT_NS + 1
    exemplar = histogram.sample("x", (), {}).exemplar
    assert exemplar is not None and 39_999 * MS <= exemplar.t_ns <= 40_100 * MS


def test_a_clock_that_is_set_back_leaves_no_exemplar_of_the_future() -> None:
    histogram = DurationHistogram()
    histogram.add(50 * MS, ("a", 1), 3600 * 1000 * MS)
    histogram.add(1 * MS, ("a", 2), 1000 * MS)
    assert histogram.slowest == ("a", 2)
