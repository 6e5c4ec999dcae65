"""Compares plans on random trees with the exact optimum, and ours with Comet's.

Trees have up to 8 sources. ``mean_gap_to_optimum``, ``max_gap``: how much more our plans cost than the best
plan over all sets of shorted junctions; ``comet_…``: the same for Comet's. ``dearer_than_comet``: trees on
which ours costs more (0 by construction); ``cheaper_than_comet``: trees on which it costs less. Ours weighs
the ways to push and pull on a small tree by the same search as the optimum: the gap says what its choice of
junctions loses. A unit test holds the optimum against all plans of one small tree, enumerated.
"""

import argparse
from statistics import mean

from benchmarks.comet.planned import prepared
from benchmarks.comet.random_networks import random_network
from benchmarks.radio.report import Row, show
from orchestrator.apps.comet.planning.beyond import beyond
from orchestrator.apps.comet.planning.optimum import optimum
from orchestrator.apps.comet.planning.planners import comet

EQUAL = 1e-9


def row(seed: int) -> Row:
    sources = 3 + seed % 6
    estimator, tree = prepared(random_network(seed, 12 + seed % 10, sources))
    plans = [planner(estimator, tree) for planner in (comet, beyond, optimum)]
    paper, ours, best = (plan.cost for plan in plans if plan is not None)
    return {
        "seed": seed,
        "sources": sources,
        "junctions": len(tree.inner) + 1,
        "comet_gap": paper / best - 1,
        "gap": ours / best - 1,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--trees", type=int, default=500, help="(default: 500)")
    options = parser.parse_args()
    rows = [row(seed) for seed in range(options.trees)]
    figures = {
        "benchmark": "comet_gap",
        "trees": len(rows),
        "mean_gap_to_optimum": mean(each["gap"] for each in rows),
        "max_gap": max(each["gap"] for each in rows),
        "comet_mean_gap": mean(each["comet_gap"] for each in rows),
        "comet_max_gap": max(each["comet_gap"] for each in rows),
        "dearer_than_comet": sum(each["gap"] > each["comet_gap"] + EQUAL for each in rows),
        "cheaper_than_comet": sum(each["gap"] < each["comet_gap"] - EQUAL for each in rows),
        "comet_was_optimal": sum(each["comet_gap"] < EQUAL for each in rows),
    }
    by_sources: list[Row] = [
        {
            "sources": number,
            "trees": len(some),
            "mean_gap": mean(each["gap"] for each in some),
            "comet_mean_gap": mean(each["comet_gap"] for each in some),
        }
        for number in sorted({each["sources"] for each in rows})
        if (some := [each for each in rows if each["sources"] == number])
    ]
    show("Gap to the exact optimum", figures, by_sources, as_json=options.json)


if __name__ == "__main__":
    main()
