"""Runs the scenario of ``olsr_scenario`` as an experiment of flows, through the whole product, and compares.

`rove`'s own life cycle runs ``experiments/flows-olsr.yaml`` in virtual time, and Spark analyses it; the ratio
is its metric ``flow_delivery_ratio``. Nodes, movements, radio and flows are those of the benchmark for the
same seed. Two things differ: the product's nodes stand still until OLSR has converged, and its daemons draw
their jitter from other streams. So every run is compared twice: with the benchmark as it is (``own``), and
with the benchmark under these two conditions (``alike``), where every packet must have the same outcome.
"""

import argparse
import json
import random
import tempfile
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

import yaml

from benchmarks.olsr_scenario import (
    FLOWS,
    PACKETS_PER_S,
    PAYLOAD,
    WINDOW_S,
    Conditions,
    node_names,
    simulate,
    streams,
)
from benchmarks.radio.report import Row, show
from benchmarks.shared.runs import described, perform
from orchestrator.analytics.pipeline import analyze
from orchestrator.services.olsr import Olsr, olsr_config
from orchestrator.spec.experiment import Experiment

EXPERIMENT = Path(__file__).parents[1] / "experiments" / "flows-olsr.yaml"
SPEEDS = (1, 5, 10)
ETX = {"metric": "etx", "fisheye": True, "mpr_coverage": 7, "tc_redundancy": 2}
"""The settings of the routing section that differ if links are rated by ETX."""
MOST_APART = 0.01

Case = tuple[int, str, int]
"""Speed, metric, seed."""


class Finished(NamedTuple):
    directory: Path
    opened_s: float
    """When nodes began to move and to send, in the run's time."""


class Ratios(NamedTuple):
    product: float
    own: float
    alike: float


def experiment(case: Case) -> Experiment:
    """Returns the experiment file with the flows that the benchmark draws for this seed."""
    speed, metric, seed = case
    document: dict[str, Any] = yaml.safe_load(EXPERIMENT.read_text())
    (flows,) = document["flows"]
    assert document.pop("sweep") and document["topology"]["nodes"] == node_names()
    assert flows.pop("pairs") == FLOWS
    assert (flows["rate"], flows["size"]) == (f"{8 * PAYLOAD * PACKETS_PER_S} b/s", f"{PAYLOAD} B")
    document["seed"] = seed
    document["topology"]["mobility"]["speed"] = f"{speed} m/s"
    document["routing"] |= ETX if metric == "etx" else {}
    document["flows"] = [
        {**flows, "from": each.source, "to": each.destination, "start": each.start_s}
        for each in streams(seed)
    ]
    return described(document, EXPERIMENT.parent)


def run(case: Case, root: Path) -> Finished:
    finished = perform(experiment(case), root, "-".join(map(str, case)))
    assert finished.verdict.verdict == "valid", finished.verdict.reasons
    manifest = json.loads(finished.directory.manifest.read_text())
    return Finished(finished.directory.path, manifest["measure_from_ns"] / 1e9 - WINDOW_S[0])


def alike(case: Case, opened_s: float) -> float:
    """Runs the benchmark under the conditions of the product's run."""
    seed = case[2]
    routing = experiment(case).routing
    assert isinstance(routing, Olsr)
    draws = _Draws(seed)
    return simulate(*case, Conditions(opened_s, draws, olsr_config(routing))).delivered


class _Draws:
    """Seeds daemons like ``orchestrator.services.olsr`` in virtual time."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def __call__(self, node: str) -> random.Random:
        return random.Random(f"olsr/{self._seed}/{node}")


def own(case: Case) -> float:
    return simulate(*case).delivered


def row(speed: int, metric: str, ratios: Sequence[Ratios]) -> Row:
    products = mean(each.product for each in ratios)
    owns = mean(each.own for each in ratios)
    return {
        "speed_mps": speed,
        "metric": metric,
        "flows": products,
        "olsr_scenario": owns,
        "difference": products - owns,
        "within": abs(products - owns) <= MOST_APART,
        "alike": mean(each.alike for each in ratios),
        "largest_difference_alike": max(abs(each.product - each.alike) for each in ratios),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--seeds", type=int, default=5, help="runs per row (default: 5)")
    parser.add_argument("--speeds", type=int, nargs="+", default=SPEEDS, choices=SPEEDS)
    parser.add_argument("--metrics", nargs="+", default=["hops"], choices=["hops", "etx"])
    parser.add_argument("--jobs", type=int, default=1, help="runs at the same time (default: 1)")
    options = parser.parse_args()
    cases: list[Case] = list(product(options.speeds, options.metrics, range(1, options.seeds + 1)))
    with tempfile.TemporaryDirectory() as folder, ProcessPoolExecutor(options.jobs) as pool:
        root = Path(folder)
        finished = list(pool.map(run, cases, [root] * len(cases)))
        owns = pool.map(own, cases)
        alikes = pool.map(alike, cases, [each.opened_s for each in finished])
        summaries = analyze([each.directory for each in finished])
        measured = [summary["metrics"]["flow_delivery_ratio"] for summary in summaries]
        ratios = dict(zip(cases, map(Ratios, measured, owns, alikes), strict=True))
    rows = [
        row(speed, metric, [ratios[speed, metric, seed] for seed in range(1, options.seeds + 1)])
        for speed, metric in product(options.speeds, options.metrics)
    ]
    figures = {
        "benchmark": "flows_scenario",
        "seeds": options.seeds,
        "outside": sum(not each["within"] for each in rows),
        "largest_difference_alike": max(each["largest_difference_alike"] for each in rows),
    }
    show("Flows through the product beside the OLSR scenario", figures, rows, as_json=options.json)


if __name__ == "__main__":
    main()
