"""Measures what the thesis' Figures 3.8 to 3.13 show, ours beside what its text states.

The broker, its machines and SUMO's traffic are real; time is virtual. Curves of the thesis are lost, so
``stated`` is what its prose says. ``parameters``: what the thesis gives and what was chosen. Streets are a
grid made by SUMO's generator, not the town of the thesis.

3.8: events on streams to operators, relative to graphs that are predeployed every 100 m (counted, not run:
for each event the squares it lies in). 3.9: by condition, events relative to a switch at each location, and
precision and recall at each location over the last 5 s. 3.10: results and streamed history relative to basic
initialization points. 3.11 to 3.13: precision = processed and wanted / to be processed, by epoch;
``first_s``: from a switch to its first result; ``history_s``: to the last one from before the switch.

``--figure`` takes one; each takes a minute or two of processor time with the defaults, which are smaller than
the thesis' runs: 1,000 vehicles on its area, or 700 as dense as there on a part, for 60 s, and 2 drivers.
"""

import argparse
from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.mcep import predicting, reconfiguring
from benchmarks.mcep.crowd import Crowds
from benchmarks.radio.report import Row, show

SECONDS, DRIVERS = 60.0, 2
Measure = Callable[[Crowds], tuple[Row, Sequence[Row]]]

COMMON: Row = {
    "area": {"stated": "a town, 7.7 km x 3.5 km", "chosen": "a grid of streets, 3.8 and 3.9 of that size"},
    "vehicles": {"stated": "up to 5,000", "chosen": "1,000; from 3.10 on 700 on 1.9 km x 1.9 km, as dense"},
    "seconds": {
        "stated": "500 to 1,000, 10 repetitions",
        "chosen": "60, 2 drivers; see options",
    },
    "events": {"stated": "1 a second and vehicle", "chosen": "the same"},
    "interests": {"stated": "rectangles of several sizes", "chosen": "squares"},
}
PARAMETERS: dict[str, dict[str, Any]] = {
    "3.8": {"stated": "edges of 50 to 500 m, grids 100 m and more apart", "chosen": "history 5 s, a switch "
            "each second, the accident's windows 5, 10 and 20 s, cameras each 100 m, one friend in 50"},
    "3.9": {"stated": "accident, precision 0.9", "chosen": "edges 250 and 500 m, history 5 s, look-back 5 s"},
    "3.10": {"stated": "history 0, a switch each second, restriction window 25 s",
             "chosen": "windows of 5 to 80 speeds above 5 m/s, edge 500 m"},
    "3.11": {"stated": "Tc 1 s, 5 ms, dead reckoning, one graph", "chosen": "5 ms for each event, a switch "
             "each 10 s, history 2 s, means of 10 speeds of at most 5 s"},
    "3.12": {"stated": "Tc up to 10 s", "chosen": "as 3.11, edge 500 m"},
    "3.13": {"stated": "Tc 1 s, edge 500 m, 5 to 20 locations, thresholds 0.9 and 0.25",
             "chosen": "as 3.11, locations evenly on a disc of 60 m"},
}  # fmt: skip
STATED = {
    "3.8": "over 99 % fewer events than predeployment",
    "3.9": "half of the events at a quality above 0.9",
    "3.10": "overhead below 10 % at a completeness of about 80 %; 20 % without history",
    "3.11": "on demand and complete: precision 1, up to 10 s late; predicted and complete: near 1; "
    "incomplete ones fall as interests grow",
    "3.12": "incompleteness falls with Tc, spatial error grows; latency near 0 at Tc = 2 s",
    "3.13": "precision rises with the number of locations and with the threshold (0.96 to 0.98)",
}


MEASURES: dict[str, Measure] = {
    "3.8": reconfiguring.predeployment,
    "3.9": reconfiguring.by_condition,
    "3.10": reconfiguring.initialization_points,
    "3.11": predicting.by_size,
    "3.12": predicting.by_time_ahead,
    "3.13": predicting.by_places,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--figure", choices=list(STATED), action="append", help="(default: all)")
    parser.add_argument("--seconds", type=float, default=SECONDS, help=f"(default: {SECONDS:g})")
    parser.add_argument("--drivers", type=int, default=DRIVERS, help=f"who ask (default: {DRIVERS})")
    options = parser.parse_args()
    crowds = Crowds(options.seconds, options.drivers)
    figures: dict[str, Any] = {"benchmark": "mcep_figures", "common": COMMON}
    every: list[Row] = []
    for name in options.figure or list(STATED):
        found, rows = MEASURES[name](crowds)
        figures[name] = {"ours": found, "stated": STATED[name], "parameters": PARAMETERS[name]}
        every += [{"figure": name, **row} for row in rows]
        if not options.json:
            show(f"Figure {name}. Stated: {STATED[name]}", found, rows, as_json=False)
    if options.json:
        show("", figures, every, as_json=True)


if __name__ == "__main__":
    main()
