"""Measures what the thesis' Figures 5.4 to 5.7 show about reuse, ours beside what its text states.

Traffic is SUMO's, and what decides is what brokers will use (``node_agent/apps/mcep/reuse``). Selections
are made by counting windows over what vehicles in a square read, not by brokers. Curves of the thesis are
lost, so ``stated`` is what its prose says. ``parameters``: what the thesis gives and what was chosen; who
asks for what, windows, thresholds and what is varied are read from ``experiments/mcep/fig5-*.yaml``.

``processed``: selections that are correlated, as a share of all, which is what no reuse processes.
``similarity``: mean precision and recall of what queries get, by atomic events, over all selections;
``similarity_reused``: over those that got another one's results. ``per_covered``: estimates of similarity for
each selection.

5.4: batches of 10 s by threshold and size of interests. 5.5a: heuristics one by one (5 s of the run) and in
batches; *overlapping*: only selections that overlap in time are estimated, the nearest first, which is ours.
5.5b: by number of queries, with the headline. 5.6: neighbours and disparity. 5.7: predictions;
*later*: missing events cannot be in a selection that is complete, which is ours.
"""

import argparse
from collections.abc import Callable
from typing import Any

from benchmarks.radio.report import Row, show
from benchmarks.reuse import covering, neighbouring
from benchmarks.reuse.figure_files import figure
from benchmarks.reuse.traffic import Traffic, traffic

COMMON_FILE = figure("5.4")
COMMON: Row = {
    "area": {"stated": "a town, 7.7 km x 3.5 km", "chosen": "a grid of streets of that size"},
    "vehicles": {"stated": "about 1,000 to 5,000 in other chapters", "chosen": "400; see options"},
    "seconds": {"stated": "not given for this chapter", "chosen": "20; see options"},
    "window": {"stated": "counting, size not given", "chosen": "30 speeds, moves by 10"},
    "switches": {"stated": "not given", "chosen": "each 5 s, every vehicle at its own times, no history"},
}
PARAMETERS: dict[str, dict[str, str]] = {
    "5.4": {
        "stated": "batches of 10 s, 25 cars, several edges with 500 m",
        "chosen": "edges 500, 2,000 and 5,000 m",
    },
    "5.5a": {
        "stated": "as 5.4, selections alone and batches",
        "chosen": "edge 5,000 m, thresholds 0.35 and 0.5",
    },
    "5.5b": {
        "stated": "MSH on batches, edge 5,000 m",
        "chosen": "5 to 50 cars, thresholds 0.35, 0.5 and 0.6, MNH too",
    },
    "5.6": {
        "stated": "neighbours each 2 s, threshold 0.5, edge 5,000 m, selections alone, MNH, 15 cars",
        "chosen": "1 to 14 neighbours within 1, 2.5 and 10 km; slow and fast vehicles joined",
    },
    "5.7": {
        "stated": "5 cars, edge 5,000 m",
        "chosen": "windows of 300 speeds that move by 50, threshold 0.5, MNH",
    },
}
STATED = {
    "5.4": "a lower threshold processes fewer; almost no reuse at 500 m; similarity is above the threshold",
    "5.5a": "MNH saves about 1 % less with 100 times fewer comparisons",
    "5.5b": "more queries: a smaller share is processed; up to 90 % fewer at a similarity above 0.65",
    "5.6": "savings and disparity grow with neighbours, disparity with distance",
    "5.7": "optimistic: most reuse, least similarity; pessimistic: least reuse, best; others in between",
}
MEASURES: dict[str, Callable[[Traffic], tuple[Row, list[Row]]]] = {
    "5.4": covering.by_threshold,
    "5.5a": covering.by_heuristic,
    "5.5b": covering.by_number,
    "5.6": neighbouring.by_neighbours,
    "5.7": neighbouring.by_prediction,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--figure", choices=list(STATED), action="append", help="(default: all)")
    parser.add_argument(
        "--seconds", type=float, default=COMMON_FILE.seconds, help=f"(default: {COMMON_FILE.seconds:g})"
    )
    parser.add_argument(
        "--vehicles", type=int, default=COMMON_FILE.vehicles, help=f"(default: {COMMON_FILE.vehicles})"
    )
    options = parser.parse_args()
    given = traffic(options.vehicles, options.seconds)
    figures: dict[str, Any] = {"benchmark": "reuse_figures", "common": COMMON}
    every: list[Row] = []
    for name in options.figure or list(STATED):
        found, rows = MEASURES[name](given)
        figures[name] = {
            "ours": found,
            "stated": STATED[name],
            "parameters": {**PARAMETERS[name], **figure(name[:3]).parameters()},
        }
        every += [{"figure": name, **row} for row in rows]
        if not options.json:
            show(f"Figure {name}. Stated: {STATED[name]}", found, rows, as_json=False)
    if options.json:
        show("", figures, every, as_json=True)


if __name__ == "__main__":
    main()
