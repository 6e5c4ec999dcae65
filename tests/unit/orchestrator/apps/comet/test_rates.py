"""How often events match: known answers, and a count of drawn instances."""

import math
import random
from bisect import bisect_left, bisect_right

import pytest

from node_agent.apps.comet.conjuncts import conjuncts
from node_agent.apps.comet.events import EventSource
from node_agent.apps.comet.grammar import parse
from orchestrator.apps.comet.planning.rates import (
    Occurrence,
    occurrence,
    ordered_matches,
    restricted,
    sum_within,
    together_matches,
    together_shares,
)

pytestmark = pytest.mark.unit


def estimated(text: str, length: float = 0.0, **rates: float) -> Occurrence:
    sources = {name: EventSource(name, "n", rate, length) for name, rate in rates.items()}
    return occurrence(conjuncts(parse(text))[0].shape, sources)


def test_two_events_are_exact() -> None:
    found = estimated("and(a, b; 3s)", a=0.5, b=0.1)
    assert found.kept["a"] == pytest.approx(-math.expm1(-2 * 3 * 0.1), rel=2e-3)
    assert found.kept["b"] == pytest.approx(-math.expm1(-2 * 3 * 0.5), rel=2e-3)
    ordered = estimated("seq(a, b; 3s)", a=0.5, b=0.1)
    assert ordered.kept["a"] == pytest.approx(-math.expm1(-0.3))
    # An a, then a b within 3 s with neither between them.
    assert ordered.matches == pytest.approx(0.5 * 0.1 / 0.6 * -math.expm1(-0.6 * 3))
    assert found.matches == pytest.approx(2 * ordered.matches)


def test_rare_events_match_as_often_as_the_volume_of_the_window_says() -> None:
    rates, window = [1e-3, 2e-3, 3e-3, 4e-3], 1.0
    combinations = len(rates) * window ** (len(rates) - 1) * math.prod(rates)
    assert together_matches(rates, window) == pytest.approx(combinations, rel=0.01)
    for rate, share in zip(rates, together_shares(rates, window), strict=True):
        assert rate * share == pytest.approx(combinations, rel=0.02)
    assert ordered_matches(rates, window) == pytest.approx(combinations / 24, rel=0.01)


def test_frequent_events_always_match() -> None:
    assert together_shares([50.0, 60.0, 70.0], 1.0) == pytest.approx([1.0] * 3, abs=1e-3)
    assert sum_within([50.0, 60.0], 1.0) == pytest.approx(1.0)


def test_a_sum_of_exponential_variables() -> None:
    assert sum_within([2.0, 2.0, 2.0], 1.0) == pytest.approx(1 - math.exp(-2) * (1 + 2 + 2))
    assert sum_within([1.0, 3.0], 0.5) == pytest.approx(1 - (3 * math.exp(-0.5) - math.exp(-1.5)) / 2)
    assert sum_within([1e-4, 1e-4], 1.0) == pytest.approx(0.5e-8, rel=1e-3)
    assert (sum_within([], 1.0), sum_within([1.0], 0.0)) == (1.0, 0.0)


@pytest.mark.parametrize(("rates", "window"), [([1.0, 0.5, 0.3], 1.0), ([2.0, 1.0, 0.5, 0.3], 0.8)])
def test_counted_instances_agree(rates: list[float], window: float) -> None:
    rng = random.Random(1)
    times: list[list[float]] = []
    for rate in rates:
        drawn, at = [], 0.0
        while (at := at + rng.expovariate(rate)) < 4000:
            drawn.append(at)
        times.append(drawn)

    def kept(at: float) -> bool:
        starts = (
            start
            for listed in times
            for start in listed[bisect_left(listed, at - window) : bisect_right(listed, at)]
        )
        return any(
            all(bisect_left(each, start) < bisect_right(each, start + window) for each in times)
            for start in starts
        )

    for listed, share in zip(times, together_shares(rates, window), strict=True):
        assert sum(map(kept, listed)) / len(listed) == pytest.approx(share, rel=0.1)


def test_lasting_events_have_less_room() -> None:
    long = estimated("seq(a, b; 3s)", length=1.0, a=0.1, b=0.1)
    assert long.kept["a"] == pytest.approx(-math.expm1(-0.1))
    assert estimated("and(a, b; 3s)", length=3.0, a=0.1, b=0.1).kept["a"] == 0.0


def test_a_nested_operator_counts_as_an_event() -> None:
    inner = estimated("seq(a, b; 2s)", a=0.1, b=0.2)
    whole = estimated("and(seq(a, b; 2s), c; 9s)", a=0.1, b=0.2, c=0.3)
    flat = together_shares([inner.matches, 0.3], 9.0)
    assert whole.kept["a"] == pytest.approx(inner.kept["a"] * flat[0])
    assert whole.kept["c"] == pytest.approx(flat[1])


def test_a_node_checks_what_it_knows() -> None:
    shape = conjuncts(parse("seq(and(a, b; 2s), c, d; 9s)"))[0].shape
    assert restricted(shape, frozenset("acd")) == conjuncts(parse("seq(a, c, d; 9s)"))[0].shape
    assert restricted(shape, frozenset("ab")) == conjuncts(parse("and(a, b; 2s)"))[0].shape
    assert restricted(shape, frozenset()) is None
