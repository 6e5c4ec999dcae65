"""Compares Comet's plans with the centralised ones on the networks of the paper's Figures 4 to 10.

Costs are estimated, per minute. ``reduction_all_push``, ``reduction_heuristic``, ``reduction_optimal``: by
how much Comet's plan is cheaper than All-Push, Centralized Heuristic and Centralized Optimal, at the
tolerance where this is most (``best``) and on average over the tolerances that have a plan (``mean``);
``paper``: what the text states. ``ours_…``: the same for our planner. ``cheaper_optimal_min``: tolerances at
which Centralized Optimal beats Comet (the paper has some in Figure 5). ``benchmarks/comet/networks.py`` says
what was chosen where the paper is silent.
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
from benchmarks.radio.report import Row, show
from orchestrator.apps.comet.planning.beyond import beyond
from orchestrator.apps.comet.planning.conversion import Order
from orchestrator.apps.comet.planning.planners import (
    Planner,
    all_push,
    centralized_heuristic,
    centralized_optimal,
    comet,
)

COMPARED: dict[str, Planner] = {
    "all_push": all_push,
    "heuristic": centralized_heuristic,
    "optimal": centralized_optimal,
    "comet": comet,
    "ours": beyond,
}
PAPER = {
    "4": {"all_push": 0.89, "heuristic": 0.66, "optimal": 0.56},
    "8": {"all_push": 0.89, "heuristic": 0.69, "optimal": 0.61},
}
"""What the text states."""
DEPTH_TOLERANCES_MIN = (30, 60, 100)


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
    planners: dict[str, Planner] = {"comet": comet, "comet_by_cost": partial(comet, order=Order.COST)}
    return _two(figure, network, planners)


def phases(figure: str, network: Network) -> tuple[dict[str, Any], list[Row]]:
    """Figure 10: both phases, or the first alone."""
    planners: dict[str, Planner] = {"comet": comet, "first_phase": partial(comet, second_phase=False)}
    return _two(figure, network, planners)


def _two(figure: str, network: Network, planners: dict[str, Planner]) -> tuple[dict[str, Any], list[Row]]:
    rows: list[Row] = [
        {"figure": figure, "tolerance_min": tolerance, **costs(network, tolerance, planners)}
        for tolerance in TOLERANCES_MIN
    ]
    _, other = planners
    planned = [row for row in rows if row["comet"] is not None]
    figures = {
        "mean_reduction": round(mean(1 - row["comet"] / row[other] for row in planned), 3),
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
        "8": lambda: compared("8", figure8()),
        "9": depths,
        "10": lambda: phases("10", figure4()),
    }
    for name, make in makers.items():
        if only is None or name.partition(",")[0] == only:
            yield name, *make()


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
