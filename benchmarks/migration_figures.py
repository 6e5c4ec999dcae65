"""Measures what the thesis' Figures 4.8 to 4.13 show about migration, ours beside what its text states.

Vehicles are SUMO's; operators, brokers and streams are simulated second by second: what streams and copied
state cost in bytes × latency (``bdp``). Plans are made and agreed on by ``node_agent/migration``; its
messages take no time. Curves of the thesis are lost, so ``stated`` is what its prose says. ``parameters``:
what the thesis gives and what was chosen.

4.8 and 4.9: cost of plans relative to operators that stay (``to_static``) and to greedy ones (``to_greedy``),
by state of the first operator and size of its events, in a quad-tree and in a tree with 40 leaves. 4.10a: by
distance between steps; 4.10b: by length of plans and how far brokers are considered; both relative to the
largest. 4.11a: weighted sum and naive by what is known of vehicles; 4.11b: k shortest paths while rates
change, relative to the largest k. 4.12 and 4.13: queries around a driver. *limits*: not in the thesis, how
often paths keep their latency.

``--variant`` changes what is known in 4.8 and 4.9: places exactly, and that with steps of 2 s.

``--keep FOLDER`` keeps drives and cells, and goes on there if it was interrupted. All figures take about
five minutes of processor time by default, which is smaller than the thesis' runs.
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.migration import figures as measures
from benchmarks.migration.cells import Cells, Size
from benchmarks.radio.report import Row, show

VEHICLES, SECONDS, REPETITIONS = 300, 300, 2
COMMON: Row = {
    "area": {"stated": "a town, 7.7 km x 3.5 km", "chosen": "a grid of streets of that size, 200 m apart"},
    "vehicles": {"stated": "about 1,000", "chosen": "300, from place to place by shortest ways; see options"},
    "seconds": {"stated": "1,000", "chosen": "300, after 300 to learn from; see options"},
    "repetitions": {"stated": "about 5", "chosen": "2: other vehicles, other hosts at first; see options"},
    "events": {"stated": "about one a second and vehicle", "chosen": "one"},
    "graph": {
        "stated": "two operators with a source each, one that joins them; one source left out",
        "chosen": "two vehicles as sources, a third one as consumer; 100 B from the other source; operators "
        "send 0.1 events a second (1 in 4.11) of 100 B, the last one a tenth of that",
    },
    "brokers": {
        "stated": "21 fog nodes in a quad-tree with a cloud root on 3 levels; 40 fog nodes below a cloud",
        "chosen": "16 leaves, 4 above, the cloud; 8 x 5 leaves below the cloud; 10 ms a hop; "
        "10 Mb/s for state",
    },
    "plans": {
        "stated": "by navigation",
        "chosen": "times by the mean speed of all vehicles; steps of 4 s, 200 s ahead, anew each 40 s and "
        "when a vehicle is at another leaf; in 4.9, 4.12, 4.13 brokers within 2,500 m",
    },
    "greedy": {"stated": "each few seconds", "chosen": "each 5 s, stop and copy"},
}
PARAMETERS: dict[str, dict[str, str]] = {
    "4.8": {"stated": "quad-tree, events of 50 to 250 B, state of 0 to 60,000 B", "chosen": "which of these"},
    "4.9": {"stated": "as 4.8 with 40 fog nodes", "chosen": "which of these"},
    "4.10a": {"stated": "steps of 1 to 16 s, state of 0 and 15,000 B", "chosen": "quad-tree, 2 to 16 s"},
    "4.10b": {
        "stated": "100 to 500 steps, brokers within 0, 2,500 and 5,000 m",
        "chosen": "20 to 500 s ahead in steps of 4 s, 40 leaves, 15,000 B",
    },
    "4.11a": {
        "stated": "naive and weighted sum; linear, navi and learned; no state but in the joining operator",
        "chosen": "quad-tree; naive: 4 sequences a neighbour, 6 combinations; dead reckoning over 10 s, off "
        "by 20 m and by what it was off in the mean before",
    },
    "4.11b": {
        "stated": "event sizes change each 20 to 1.25 s",
        "chosen": "13 to 247 B, evenly; 1, 2, 4, 8 paths; rates measured over 5 s; costs may be off by half",
    },
    "4.12": {
        "stated": "accidents and videos, 40 fog nodes, state of one leaf operator, exact and predicted "
        "places, operators begin near the consumer",
        "chosen": "1 km around a driver, 37 vehicles a km², 60 B; 500 m, a camera each 100 m, a picture a "
        "second of 10 kB; predicted: dead reckoning",
    },
    "4.13": {"stated": "accidents, events of 10 to 100 B", "chosen": "state of 200 kB"},
    "limits": {"stated": "none", "chosen": "35 ms for each path, 40 leaves"},
}
STATED = {
    "4.8": "far below static; as greedy with little state, better with more; more so with large events; 27 "
    "messages a coordination; more than 80 % saved to static and 20 % to greedy",
    "4.9": "as 4.8",
    "4.10a": "cost grows linearly with the distance, vertices fall",
    "4.10b": "a larger range is better, but a small one not much worse; too few and too many steps both cost",
    "4.11a": "each policy beats greedy above some state",
    "4.11b": "changes are fast: more paths cost more; slow: they cost less",
    "4.12": "as greedy with little state, better with more; greedy has the lower latency, and stops for "
    "more than a minute with 100,000 kB",
    "4.13": "what is saved to greedy falls with the size of events",
    "limits": "nothing measured; migration keeps limits as operators go on while they are copied",
}
TREES: dict[str, Callable[[Cells, str], measures.Found]] = {"4.8": measures.tree_a, "4.9": measures.tree_b}
MEASURES: dict[str, Callable[[Cells], measures.Found]] = {
    "4.10a": measures.step_distance,
    "4.10b": measures.horizon,
    "4.11a": measures.uncertainty,
    "4.11b": measures.k_paths,
    "4.12": measures.queries,
    "4.13": measures.event_size,
    "limits": measures.limits,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--figure", choices=list(STATED), action="append", help="(default: all)")
    parser.add_argument("--vehicles", type=int, default=VEHICLES, help=f"(default: {VEHICLES})")
    parser.add_argument("--seconds", type=int, default=SECONDS, help=f"(default: {SECONDS})")
    parser.add_argument("--repetitions", type=int, default=REPETITIONS, help=f"(default: {REPETITIONS})")
    variants = [each for each in measures.VARIANTS if each]
    parser.add_argument(
        "--variant", choices=variants, default="", help="of 4.8 and 4.9 (default: navigation)"
    )
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="go on with what is there")
    options = parser.parse_args()
    cells = Cells(Size(options.vehicles, options.seconds, options.repetitions), options.keep)
    found: dict[str, Any] = {"benchmark": "migration_figures", "variant": options.variant, "common": COMMON}
    every: list[Row] = []
    for name in options.figure or list(STATED):
        ours, rows = TREES[name](cells, options.variant) if name in TREES else MEASURES[name](cells)
        found[name] = {"ours": ours, "stated": STATED[name], "parameters": PARAMETERS[name]}
        every += [{"figure": name, **row} for row in rows]
        if not options.json:
            show(f"Figure {name}. Stated: {STATED[name]}", ours, rows, as_json=False)
    if options.json:
        show("", found, every, as_json=True)


if __name__ == "__main__":
    main()
