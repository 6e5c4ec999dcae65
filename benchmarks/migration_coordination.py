"""Lets operators agree on plans in random graphs, with messages that are late and overtake each other (T-28).

2 to 7 operators in each graph; half of the graphs have brokers with little room, a third latency limits, a
third uncertain sources. ``unfinished``: operators that still waited or had a better plan when no message was
left. ``circles``: moments when operators waited for each other in a circle. ``raised``: plans that did not
lower the total cost of all streams and migrations. ``dearer``: plans that cost more because they break fewer
latency limits; those are meant. ``overfull``: moments when a broker had granted more than it has.
"""

import argparse
import time
from dataclasses import asdict

from benchmarks.migration.coordination import Outcome, coordinate
from benchmarks.radio.report import Row, show

GRAPHS = 10_000
CHUNK = 1_000


def row(first: int, count: int) -> dict[str, float]:
    """Sums over graphs."""
    begin = time.process_time()
    sums: dict[str, float] = dict.fromkeys(asdict(Outcome()), 0)
    for seed in range(first, first + count):
        for name, value in asdict(coordinate(seed)).items():
            sums[name] += value
    return {"first": first, "graphs": count, **sums, "seconds": time.process_time() - begin}


def measure(graphs: int, first: int) -> tuple[Row, list[Row]]:
    rows = [row(first + begin, min(CHUNK, graphs - begin)) for begin in range(0, graphs, CHUNK)]
    sums = {name: sum(each[name] for each in rows) for name in rows[0] if name != "first"}
    saved = 1 - sums["after"] / sums["before"]
    per_plan = sums["messages"] / max(1, sums["plans"])
    figures = {"benchmark": "migration_coordination", **sums, "saved": saved, "messages_per_plan": per_plan}
    return figures, list(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--graphs", type=int, default=GRAPHS, help=f"(default: {GRAPHS})")
    parser.add_argument("--first", type=int, default=0, help="the first seed (default: 0)")
    options = parser.parse_args()
    figures, rows = measure(options.graphs, options.first)
    show("migration_coordination: plans of neighbours, agreed on", figures, rows, as_json=options.json)


if __name__ == "__main__":
    main()
