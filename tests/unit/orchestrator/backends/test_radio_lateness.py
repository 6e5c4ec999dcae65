from array import array

import pytest

from orchestrator.backends.netns.radio.lateness import (
    BINS,
    EARLY_NS,
    FINE_BINS,
    LIMIT_NS,
    Tally,
    histogram,
    quantile_us,
    upper_edge_us,
)

ORIGIN_NS = 7 * 10**15


def counted(*late_ns: int) -> list[int]:
    """As the loop counts, by a clock whose origin is model time 0."""
    bins = array("q", [0] * BINS)
    tally = Tally(ORIGIN_NS, bins)
    for late in late_ns:
        tally.note(ORIGIN_NS + late)
    tally.settle()
    return bins.tolist()


@pytest.mark.parametrize("late_ns", [-EARLY_NS, 0, 1, 999_999, LIMIT_NS, LIMIT_NS + 1, 5_000_000, 10**13])
def test_every_lateness_has_a_bin_that_ends_at_or_above_it(late_ns: int) -> None:
    (index,) = [index for index, count in enumerate(counted(late_ns)) if count]
    assert upper_edge_us(index) >= late_ns / 1e3
    # A bin is about 1 µs wide, or it doubles; early is on time.
    assert upper_edge_us(index) <= max(0.0, late_ns / 1e3 + 1.1, 2.1 * late_ns / 1e3)


def test_counts_add_up_and_the_latest_is_remembered() -> None:
    bins = array("q", [0] * BINS)
    tally = Tally(0, bins)
    for late in (3_000_000, -10_000, 500):
        tally.note(late)
        tally.settle()
    tally.settle()
    assert sum(bins) == 3
    assert tally.latest_ns == 3_000_000


def test_the_limit_parts_late_from_not_late() -> None:
    bins = counted(LIMIT_NS, LIMIT_NS + 1)
    assert (sum(bins[:FINE_BINS]), sum(bins[FINE_BINS:])) == (1, 1)


def test_quantiles_are_those_of_all_deliveries() -> None:
    bins = counted(*([100_000] * 98), 900_000, 40_000_000)
    assert quantile_us(bins, 0.5) == pytest.approx(100, abs=1.1)
    assert quantile_us(bins, 0.99) == pytest.approx(900, abs=1.1)
    assert quantile_us(bins, 1.0) >= 40_000
    assert quantile_us(counted(), 0.5) == 0.0


def test_the_histogram_loses_nothing() -> None:
    bins = counted(-30_000, -10_000, 0, 500_000, 2_000_000)
    assert sum(entry.count for entry in histogram(bins)) == 5
    edges = [entry.below_us for entry in histogram(bins)]
    assert edges == sorted(set(edges))
