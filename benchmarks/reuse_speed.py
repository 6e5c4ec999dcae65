"""Measures how much faster operators go when they share results: the thesis' Figure 5.8, on one core.

Queries of some operators at random places, each interested in a quarter of the area; events lie everywhere
alike. Each operator averages 30 events, sliding by one, ``complexity`` times over. All selections go through
the selection manager, which decides in batches by the naive MSH, from what operators got lately. The same
selections without a manager are the baseline.

``throughput_ratio``: selections a second of CPU time with reuse, relative to without, at the highest
complexity and number of operators. Rows: by number of operators and complexity with 10 batches, and by
number of batches. ``processed``, ``similarity``: as in ``reuse_figures``.
"""

import argparse
import random
import time
from statistics import fmean
from typing import NamedTuple

from benchmarks.radio.report import Row, show
from node_agent.apps.mcep.geometry import Box, Point, contains
from node_agent.apps.mcep.model import Event, Quality, atomic
from node_agent.apps.mcep.reuse.batches import Counted
from node_agent.apps.mcep.reuse.judging import Rules
from node_agent.apps.mcep.reuse.manager import Connected, SelectionManager, Settings
from node_agent.apps.mcep.reuse.neighbours import all_of_a_type
from node_agent.apps.mcep.reuse.results import Input, Key
from node_agent.apps.mcep.reuse.similarity import by_recent

SIDE_M, WINDOW, SELECTIONS = 1000.0, 30, 10_000
OPERATORS, COMPLEXITIES, BATCHES = (5, 10, 20), (1, 10, 100), (1, 10, 100)
LEAST = Quality(0.3, 0.3)


class Scene(NamedTuple):
    """Selections by operator, in order."""

    regions: dict[str, Box]
    selections: dict[str, list[tuple[Event, ...]]]


def scene(operators: int, selections: int, seed: int = 1) -> Scene:
    rng = random.Random(seed)
    half = SIDE_M / 2
    regions, streams = {}, {}
    for number in range(operators):
        x, y = rng.uniform(0, half), rng.uniform(0, half)
        regions[f"q{number}"] = Box(x, y, x + half, y + half)
        streams[f"q{number}"] = list[Event]()
    each = selections // operators
    number = 0
    while min(map(len, streams.values())) < each + WINDOW:
        place = Point(rng.uniform(0, SIDE_M), rng.uniform(0, SIDE_M))
        speed = {"speed": rng.uniform(0, 14)}
        event = atomic("speed", number / 100, place, number, "car", speed)
        number += 1
        for name, region in regions.items():
            if contains(region, place):
                streams[name].append(event)
    return Scene(
        regions,
        {name: [tuple(s[n : n + WINDOW]) for n in range(each)] for name, s in streams.items()},
    )


def average(events: tuple[Event, ...], complexity: int) -> float:
    found = 0.0
    for _ in range(complexity):
        found = fmean(float(each.attributes["speed"]) for each in events)
    return found


def without(given: Scene, complexity: int) -> float:
    """CPU seconds for all selections."""
    started = time.process_time()
    for selections in given.selections.values():
        for each in selections:
            average(each, complexity)
    return time.process_time() - started


def shared(given: Scene, complexity: int, batches: int) -> tuple[float, int, float]:
    """CPU seconds, how many were processed, and the mean similarity of what operators got."""
    size = -(-len(next(iter(given.selections.values()))) // batches)
    rules = Rules(LEAST, estimate=by_recent)
    manager = SelectionManager(Settings(rules, "similarity", Counted(size), recent_s=20.0))
    neighbours = all_of_a_type(dict.fromkeys(given.regions, "mean"))
    inputs = {name: [tuple(map(Input, each)) for each in every] for name, every in given.selections.items()}
    processed, pairs = 0, list[tuple[Key, Key]]()
    started = time.process_time()
    for name, region in given.regions.items():
        manager.connect(Connected(name, region, ("b",)))
    for first in range(0, len(next(iter(inputs.values()))), size):
        for name, every in inputs.items():
            for number in range(first, min(first + size, len(every))):
                manager.fill(name, number, every[number])
                manager.close(name, number)
        for each in manager.cover(neighbours).process:
            value = average(tuple(one.event for one in each.inputs), complexity)
            last = each.inputs[-1].event
            manager.finished(each.key, [last._replace(attributes={"mean": value})])
            processed += 1
            pairs += [(each.key, key) for key in each.covered]
    spent = time.process_time() - started
    return spent, processed, fmean(similarity(given, *each) for each in pairs)


def similarity(given: Scene, used: Key, wanted: Key) -> float:
    """All selections have equally many events, so precision is recall."""
    one, other = ({e.seq for e in given.selections[name][number]} for name, number in (used, wanted))
    return len(one & other) / WINDOW


def measured(given: Scene, complexity: int, batches: int) -> Row:
    every = sum(map(len, given.selections.values()))
    base = without(given, complexity)
    spent, processed, mean = shared(given, complexity, batches)
    return {
        "operators": len(given.regions),
        "complexity": complexity,
        "batches": batches,
        "selections": every,
        "processed": processed / every,
        "similarity": mean,
        "without_per_second": every / base,
        "shared_per_second": every / spent,
        "throughput_ratio": base / spent,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument(
        "--selections", type=int, default=SELECTIONS, help=f"of all operators (default: {SELECTIONS})"
    )
    options = parser.parse_args()
    rows = []
    for operators in OPERATORS:
        given = scene(operators, options.selections)
        rows += [measured(given, complexity, 10) for complexity in COMPLEXITIES]
    rows += [measured(given, 10, batches) for batches in BATCHES]
    best = rows[len(OPERATORS) * len(COMPLEXITIES) - 1]
    figures = {
        "benchmark": "reuse_speed",
        "throughput_ratio": best["throughput_ratio"],
        "processed": best["processed"],
        "similarity": best["similarity"],
        "stated": "grows with the number of operators and complexity, falls with the number of batches",
    }
    show(
        "Operators that share results, relative to operators that do not", figures, rows, as_json=options.json
    )


if __name__ == "__main__":
    main()
