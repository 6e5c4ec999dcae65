"""Compares Comet's plans with the centralised ones on the networks of the paper's Figures 4 to 10.

Costs are estimated, per minute. ``reduction_all_push``, ``reduction_heuristic``, ``reduction_optimal``: by
how much Comet's plan is cheaper than All-Push, Centralized Heuristic and Centralized Optimal, at the
tolerance where this is most (``best``) and on average over the tolerances that have a plan (``mean``);
``paper``: what the text states. ``ours_…``: the same for our planner. ``cheaper_optimal_min``: tolerances at
which Centralized Optimal beats Comet (the paper has some in Figure 5). Figure 7 also has random networks:
``cheaper``, ``dearer``: than conversions ordered by saved cost alone. ``…_stops``: the first phase ends with
the first conversion in order that does not fit; else it passes over such ones. ``command``: lets nodes carry
plans of the figure out. ``benchmarks/comet/networks.py`` says what was chosen where the paper is silent.
"""

import argparse
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from statistics import mean
from typing import Any

from benchmarks.comet.networks import (
    MINUTE,
    TOLERANCES_MIN,
    Network,
    figure4,
    figure5,
    figure6,
    figure8,
    figure9,
)
from benchmarks.comet.planned import costs, prepared
from benchmarks.comet.random_networks import random_network
from benchmarks.radio.report import Row, show
from orchestrator.apps.comet.planned import PLANNERS
from orchestrator.apps.comet.planning.conversion import Order
from orchestrator.apps.comet.planning.planners import Planner, comet

COMPARED: dict[str, Planner] = {
    "all_push": PLANNERS["all_push"],
    "heuristic": PLANNERS["centralized_heuristic"],
    "optimal": PLANNERS["centralized_optimal"],
    "comet": PLANNERS["comet"],
    "ours": PLANNERS["ours"],
}
PAPER = {
    "4": {"all_push": 0.89, "heuristic": 0.66, "optimal": 0.56},
    "8": {"all_push": 0.89, "heuristic": 0.69, "optimal": 0.61},
}
"""What the text states."""
DEPTH_TOLERANCES_MIN = (30, 60, 100)
RANDOM_NETWORKS = 100


def compared(figure: str, network: Network) -> tuple[dict[str, Any], list[Row]]:
    rows: list[Row] = [
        {"figure": figure, "tolerance_min": tolerance, **costs(network, tolerance, COMPARED)}
        for tolerance in TOLERANCES_MIN
    ]
    planned = [row for row in rows if row["comet"] is not None]
    figures: dict[str, Any] = {"fastest_min": prepared(network)[1].fastest / MINUTE}
    for who, prefix in (("comet", ""), ("ours", "ours_")):
        for other in ("all_push", "heuristic", "optimal"):
            reductions = [1 - row[who] / row[other] for row in planned]
            figures[f"{prefix}reduction_{other}"] = {
                "best": round(max(reductions), 3),
                "mean": round(mean(reductions), 3),
                "paper": PAPER.get(figure, {}).get(other),
            }
    figures["cheaper_optimal_min"] = [
        row["tolerance_min"] for row in planned if row["optimal"] < row["comet"] * (1 - 1e-9)
    ]
    return figures, rows


def orders(figure: str, network: Network) -> tuple[dict[str, Any], list[Row]]:
    """Figure 7: conversions ordered by cost reduction per delay, or by cost reduction alone."""
    figures, rows = _two(figure, network, PLANNERS["comet"], PLANNERS["comet_by_cost"], "comet_by_cost")
    by_cost = partial(comet, order=Order.COST, stops=True)
    figures["if_it_stops"], stopping = _two(figure, network, partial(comet, stops=True), by_cost, "by_cost")
    both: list[Row] = [
        {**row, "comet_stops": other["comet"], "by_cost_stops": other["by_cost"]}
        for row, other in zip(rows, stopping, strict=True)
    ]
    return figures, both


def orders_elsewhere() -> tuple[dict[str, Any], list[Row]]:
    """Figure 7 on random networks: how often a reading of CDR is cheaper or dearer than cost alone."""
    planners: dict[str, Planner] = {order.name.lower(): partial(comet, order=order) for order in Order}
    for order in (Order.CDR, Order.COST):
        planners[f"{order.name.lower()}_stops"] = partial(comet, order=order, stops=True)
    rows: list[Row] = []
    for seed in range(RANDOM_NETWORKS):
        network = random_network(seed, nodes=12, events=8)
        tolerance = network.request.tolerance / MINUTE
        found = costs(network, tolerance, planners)
        rows.append({"figure": f"7, network {seed}", "tolerance_min": round(tolerance, 1), **found})
    figures: dict[str, Any] = {"networks": len(rows)}
    for name, other in (("cdr", "cost"), ("cdr_of_link", "cost"), ("cdr_stops", "cost_stops")):
        ratios = [row[name] / row[other] for row in rows]
        figures[name] = {
            "cheaper": sum(ratio < 1 - 1e-9 for ratio in ratios),
            "dearer": sum(ratio > 1 + 1e-9 for ratio in ratios),
            "mean_reduction": round(1 - mean(ratios), 3),
        }
    return figures, rows


def phases(figure: str, network: Network) -> tuple[dict[str, Any], list[Row]]:
    """Figure 10: both phases, or the first alone."""
    first_phase = PLANNERS["comet_first_phase"]
    return _two(figure, network, PLANNERS["comet"], first_phase, "comet_first_phase")


def _two(
    figure: str, network: Network, planner: Planner, variant: Planner, other: str
) -> tuple[dict[str, Any], list[Row]]:
    """``other``: the name of the variant."""
    planners = {"comet": planner, other: variant}
    rows: list[Row] = [
        {"figure": figure, "tolerance_min": tolerance, **costs(network, tolerance, planners)}
        for tolerance in TOLERANCES_MIN
    ]
    planned = [row for row in rows if row["comet"] is not None]
    figures: dict[str, Any] = {
        "mean_reduction": round(mean(1 - row["comet"] / row[other] for row in planned), 3),
        "cheaper_min": [r["tolerance_min"] for r in planned if r["comet"] < r[other] * (1 - 1e-9)],
        "equal_min": [r["tolerance_min"] for r in planned if abs(r["comet"] / r[other] - 1) < 1e-9],
        "dearer_min": [r["tolerance_min"] for r in planned if r["comet"] > r[other] * (1 + 1e-9)],
    }
    return figures, rows


def depths() -> tuple[dict[str, Any], list[Row]]:
    """Figure 9: Comet's cost by the depth of the tree, beside what the sink alone can do."""
    rows: list[Row] = [
        {
            "figure": f"9, depth {depth}",
            "tolerance_min": tolerance,
            **costs(figure9(depth), tolerance, COMPARED),
        }
        for tolerance in DEPTH_TOLERANCES_MIN
        for depth in (1, 2, 3, 4)
    ]
    by_tolerance = {
        tolerance: [row for row in rows if row["tolerance_min"] == tolerance]
        for tolerance in DEPTH_TOLERANCES_MIN
    }
    return {
        "comet_by_depth": {t: [round(row["comet"], 4) for row in each] for t, each in by_tolerance.items()},
        "optimal_by_depth": {
            t: [round(row["optimal"], 4) for row in each] for t, each in by_tolerance.items()
        },
    }, rows


def measured(only: str | None) -> Iterator[tuple[str, Mapping[str, Any], list[Row]]]:
    makers: dict[str, Callable[[], tuple[dict[str, Any], list[Row]]]] = {
        "4": lambda: compared("4", figure4()),
        "5": lambda: compared("5", figure5()),
        "6, uniform cost": lambda: compared("6, uniform cost", figure6(uniform_cost=True)),
        "6": lambda: compared("6", figure6(uniform_cost=False)),
        "7, uniform cost": lambda: orders("7, uniform cost", figure6(uniform_cost=True)),
        "7": lambda: orders("7", figure6(uniform_cost=False)),
        "7, random networks": orders_elsewhere,
        "8": lambda: compared("8", figure8()),
        "9": depths,
        "10": lambda: phases("10", figure4()),
    }
    for name, make in makers.items():
        number = name.partition(",")[0]
        if only is None or number == only:
            figures, rows = make()
            yield name, {**figures, "command": f"rove run experiments/comet/fig{number}.yaml"}, rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--figure", choices=[str(number) for number in range(4, 11)], help="only this one")
    options = parser.parse_args()
    found = list(measured(options.figure))
    if options.json:
        figures = {"benchmark": "comet_figures", "figures": {name: each for name, each, _ in found}}
        show("", figures, [row for _, _, rows in found for row in rows], as_json=True)
        return
    for name, each, rows in found:
        show(f"Figure {name}: cost per minute", each, rows, as_json=False)


if __name__ == "__main__":
    main()
