"""Measures what the thesis' Figures 3.8 to 3.13 show, ours beside what its text states.

The broker, its machines and SUMO's traffic are real; time is virtual. Curves of the thesis are lost, so
``stated`` is what its prose says. ``parameters``: as read from the figure's file in ``experiments/mcep``,
where comments tell what the thesis gives and what was chosen. Streets are a grid made by SUMO's generator,
not the town of the thesis.

3.8: events on streams to operators, relative to graphs that are predeployed every 100 m (counted, not run:
for each event the squares it lies in). 3.9: by condition, events relative to a switch at each location, and
precision and recall at each location over the last 5 s. 3.10: results and streamed history relative to basic
initialization points. 3.11 to 3.13: precision = processed and wanted / to be processed, by epoch: that of the
region (``spatial``) times the share that was processed in time (``done``); ``first_s``: from a switch to its
first result; ``history_s``: to the last one from before the switch; ``prepared``: share of switches to
prepared graphs.

``--figure`` takes one; each takes a minute or two of processor time with the defaults, which are smaller than
the thesis' runs: 1,000 vehicles on its area, or 700 as dense as there on a part, for 60 s, and 2 drivers.
``--variant`` changes what the thesis does not say, to find out what causes a difference.
"""

import argparse
from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.mcep import predicting, reconfiguring
from benchmarks.mcep.crowd import Crowds
from benchmarks.mcep.figure_files import Figure, changed, figure
from benchmarks.radio.report import Row, show

DRIVERS = 2
Measure = Callable[[Figure, Crowds], tuple[Row, Sequence[Row]]]
VARIANTS: dict[str, dict[str, Any]] = {
    "little-history": {"history": "0.5s", "parameters__within": 1.5},
    "switch-3s": {"switch": {"after": "2.5s"}},
    "switch-10s": {"switch": {"after": "9.99s"}},
}
"""By name, keys of the query with other values than the file's. ``switch-10s``: the switch comes when it is
expected, not with the next place, up to half a second later."""
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
    parser.add_argument("--seconds", type=float, help="(default: the file's duration)")
    parser.add_argument("--drivers", type=int, default=DRIVERS, help=f"who ask (default: {DRIVERS})")
    parser.add_argument("--variant", choices=list(VARIANTS), help="of the query (default: as in the file)")
    options = parser.parse_args()
    crowds = Crowds(options.seconds, options.drivers)
    figures: dict[str, Any] = {"benchmark": "mcep_figures", "variant": options.variant}
    every: list[Row] = []
    for name in options.figure or list(STATED):
        read = changed(figure(name), **VARIANTS.get(options.variant, {}))
        found, rows = MEASURES[name](read, crowds)
        figures[name] = {"ours": found, "stated": STATED[name], "parameters": read.parameters()}
        every += [{"figure": name, **row} for row in rows]
        if not options.json:
            show(f"Figure {name}. Stated: {STATED[name]}", found, rows, as_json=False)
    if options.json:
        show("", figures, every, as_json=True)


if __name__ == "__main__":
    main()
