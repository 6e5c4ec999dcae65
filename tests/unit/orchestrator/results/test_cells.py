"""Means over seeds and paired gains over the fewest replicas."""

from typing import Any

import pytest

from orchestrator.results import registry
from orchestrator.results.cells import cells, spread
from orchestrator.results.gains import NO_PAIRS, NO_RESULT, gains

AVERAGED = [metric.name for metric in registry.ANALYTICS["query"].metrics if metric.averaged]


def run(k: int, seed: int, fps: float, p95: float | None = 1.0, **factors: Any) -> dict[str, Any]:
    metrics = dict.fromkeys(AVERAGED, 0.0) | {"goodput_fps": fps, "latency_p95_s": p95}
    name = f"k{k}s{seed}"
    return {
        "run": name,
        "factors": {"replicas": k, "seed": seed, **factors},
        "seed": seed,
        "verdict": "valid",
        "metrics": metrics,
    }


def test_runs_that_differ_only_in_seed_are_one_cell() -> None:
    found = cells([run(1, 1, 2.0), run(1, 2, 4.0), run(2, 1, 3.0)], [True] * 3)
    assert [cell["factors"] for cell in found] == [{"replicas": 1}, {"replicas": 2}]
    assert found[0]["seeds"] == [1, 2]
    # The sample standard deviation of 2 and 4 is √2.
    assert found[0]["metrics"]["goodput_fps"] == {"mean": 3.0, "sd": 1.414213562, "n": 2}
    assert found[1]["metrics"]["goodput_fps"] == {"mean": 3.0, "sd": None, "n": 1}


def test_gain_is_the_mean_of_ratios_of_the_same_seed() -> None:
    runs = [run(1, 1, 1.0), run(1, 2, 4.0), run(3, 1, 2.0), run(3, 2, 4.0), run(3, 3, 9.0)]
    versus = cells(runs, [True] * 5)[1]["versus"]
    assert versus["factors"] == {"replicas": 1}
    # Seed 1: 2/1, seed 2: 4/4, seed 3 has no partner. Not (2+4)/(1+4).
    ratio = versus["ratios"]["goodput_fps"]
    assert (ratio["mean"], ratio["n"], ratio["mean_95"]) == (1.5, 2, None)
    assert (ratio["ratio_of_means"], ratio["pairs"], ratio["ratio_of_means_95"]) == (1.2, 2, None)


def test_three_pairs_have_intervals_and_are_said_in_words() -> None:
    runs = [run(k, seed, k * seed + (k == 3 and seed == 2)) for k in (1, 3) for seed in (1, 2, 3)]
    found = cells(runs, [True] * 6)
    ratio = found[1]["versus"]["ratios"]["goodput_fps"]
    assert ratio["pairs"] == ratio["n"] == 3
    assert (ratio["ratio_of_means"], ratio["mean"]) == pytest.approx((19 / 6, 9.5 / 3))
    (said,) = gains(found, "query", "query")
    assert said == (
        "k = 3 carries 3.17 × [2.50, 4.01] the tuples of k = 1, 3 paired runs (ratio of means; mean of "
        "ratios 3.17 × [2.45, 3.88]; large effect, d = 12.9)"
    )


def test_one_pair_is_called_no_result() -> None:
    runs = [run(k, 1, float(k), speed=speed) for speed in (1, 5) for k in (1, 2)]
    said = gains(cells(runs, [True] * 4), "query", "query")
    assert said[0] == (
        "k = 2 carries 2.00 × the tuples of k = 1 at speed = 1, 1 paired run (ratio of means; mean of ratios "
        "2.00 ×)"
    )
    assert said[2:] == [NO_RESULT]
    assert gains(cells(runs[:1], [True]), "query", "query") == []


def test_what_has_nothing_to_compare_with_is_said() -> None:
    said = gains(cells([run(1, 1, 0.0), run(2, 1, 1.0)], [True] * 2), "query", "query")
    assert said[0] == "goodput of k = 2 cannot be compared with k = 1: k = 1 has none"
    apart = [run(1, 1, 1.0), run(2, 2, 1.0)]
    assert gains(cells(apart, [True] * 2), "query", "query") == [NO_PAIRS]
    said = gains(cells([*apart, run(3, 1, 2.0)], [True] * 3), "query", "query")
    assert said[0] == "goodput of k = 2 cannot be compared with k = 1: no seed has both"


def test_without_usable_runs_nobody_is_sent_for_more_seeds() -> None:
    assert gains(cells([run(1, 1, 1.0), run(2, 1, 2.0)], [False] * 2), "query", "query") == [NO_PAIRS]


def test_pairs_without_a_ratio_of_their_own_are_not_counted_for_the_mean_of_ratios() -> None:
    runs = [run(1, seed, base) for seed, base in enumerate((0.0, 1.0, 1.0, 1.0))]
    runs += [run(3, seed, 2.0) for seed in range(4)]
    (said,) = gains(cells(runs, [True] * 8), "query", "query")
    assert (
        "k = 1, 4 paired runs (ratio of means; mean of ratios of the 3 in which k = 1 has some 2.00 × "
        in said
    )


def test_gain_compares_like_with_like() -> None:
    runs = [
        run(1, 1, 1.0, speed=1),
        run(1, 1, 10.0, speed=5),
        run(2, 1, 2.0, speed=1),
        run(2, 1, 30.0, speed=5),
    ]
    gains = [cell["versus"]["ratios"]["goodput_fps"]["mean"] for cell in cells(runs, [True] * 4)]
    assert gains == [1.0, 1.0, 2.0, 3.0]


def test_unusable_runs_are_named_and_left_out() -> None:
    found = cells([run(1, 1, 2.0), run(1, 2, 100.0)], [True, False])[0]
    assert found["n"] == 1
    assert found["metrics"]["goodput_fps"]["mean"] == 2.0
    assert found["excluded"] == [{"run": "k1s2", "verdict": "valid"}]


def test_nothing_to_compare_with_gives_no_ratio() -> None:
    found = cells([run(1, 1, 0.0, None), run(2, 1, 1.0)], [True, True])[1]
    ratio = found["versus"]["ratios"]["goodput_fps"]
    assert (ratio["mean"], ratio["n"], ratio["ratio_of_means"], ratio["pairs"]) == (None, 0, None, 1)
    assert "versus" not in cells([run(1, 1, 1.0)], [True])[0]


@pytest.mark.parametrize(("values", "mean"), [([], None), ([None], None), ([None, 2.0], 2.0)])
def test_missing_values_do_not_count(values: list[float | None], mean: float | None) -> None:
    assert spread(values)["mean"] == mean
