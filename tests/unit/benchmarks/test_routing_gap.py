"""The benchmark ``routing_gap``: what its rows claim of few runs."""

import pytest

from benchmarks.routing_gap import DEFAULT, OURS, TRUTH, Case, Outcome, case_of, row

pytestmark = [pytest.mark.unit, pytest.mark.timeout(30)]

GROUP = (10, 3, "random")


def outcomes(seeds: int, *routings: str) -> dict[Case, Outcome]:
    goodputs = {TRUTH: 10.0, DEFAULT: 5.0, OURS: 9.0}
    return {
        case_of(GROUP, seed, routing): Outcome(goodputs[routing] + seed, 1000.0, True)
        for seed in range(seeds)
        for routing in routings
    }


def test_one_pair_has_no_interval() -> None:
    found = row(GROUP, OURS, outcomes(1, TRUTH, DEFAULT, OURS), range(1))
    assert found is not None
    assert (found["pairs"], found["share_low"], found["share_high"]) == (1, None, None)
    several = row(GROUP, OURS, outcomes(4, TRUTH, DEFAULT, OURS), range(4))
    assert several is not None
    assert several["share_low"] < several["share"] < several["share_high"]


def test_an_overhead_that_nobody_measured_reaches_no_target() -> None:
    found = row(GROUP, OURS, outcomes(4, TRUTH, OURS), range(4))
    assert found is not None and found["share"] > found["target"]
    assert found["overhead"] is None and not found["reached"]
    measured = row(GROUP, OURS, outcomes(4, TRUTH, DEFAULT, OURS), range(4))
    assert measured is not None and measured["reached"]
