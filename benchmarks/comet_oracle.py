"""Holds what agents' state machines detect against an omniscient observer.

On random networks with random patterns, events and contacts; in 300 of 1,000 runs nodes crash and go on from
their journals, and contacts end in the middle of transfers. ``missed``, ``invented``: detections that differ
from those of ``reference``; ``duplicated``: told twice; ``late``: later than the plan promised, in runs whose
contacts are as the plan assumes.
"""

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path

from benchmarks.comet.execution import Execution
from benchmarks.comet.scenarios import Scenario, scenario
from benchmarks.radio.report import Row, show
from node_agent.apps.comet.patterns import printed
from node_agent.apps.comet.reference import detections

RUNS, ROUGH = 1000, 300
SLACK_S = 1e-6


def row(made: Scenario, *, rough: bool) -> Row:
    with tempfile.TemporaryDirectory() as folder:
        journals = Path(folder) if rough else None
        run = Execution(made.plans, made.wires, made.instances, made.crashes, journals, made.seed)
        outcome = run.run(made.until)
    everything = [instance for _, instance in made.instances]
    missed = invented = duplicated = late = true = 0
    for request in made.requests:
        expected = set(detections(request.pattern, everything))
        told = Counter(found for name, found, _ in outcome.found if name == request.name)
        true += len(expected)
        missed += len(expected - told.keys())
        invented += len(told.keys() - expected)
        duplicated += sum(count - 1 for count in told.values())
        if not rough:
            late += sum(
                at - found.end > made.promised[name] + SLACK_S
                for name, found, at in outcome.found
                if name == request.name
            )
    return {
        "seed": made.seed,
        "rough": rough,
        "patterns": "  ".join(printed(each.pattern) for each in made.requests),
        "pulls": made.pulls,
        "detections": true,
        "missed": missed,
        "invented": invented,
        "duplicated": duplicated,
        "late": late,
        "crashes": outcome.crashes,
        "cut": outcome.cut,
        "refused": outcome.refused,
        "dropped": outcome.dropped,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument(
        "--runs", type=int, default=RUNS, help=f"(default: {RUNS}), three in ten of them rough"
    )
    parser.add_argument("--first", type=int, default=0, help="seed of the first one")
    options = parser.parse_args()
    rows: list[Row] = []
    for seed in range(options.first, options.first + options.runs):
        rough = seed % 10 >= 10 - 10 * ROUGH // RUNS
        rows.append(row(scenario(seed, rough=rough), rough=rough))
        wrong = any(rows[-1][key] for key in ("missed", "invented", "duplicated", "late", "refused"))
        if wrong:
            print(rows[-1], file=sys.stderr, flush=True)
        if len(rows) % 100 == 0:
            print(f"{len(rows)} runs", file=sys.stderr, flush=True)
    figures = {"benchmark": "comet_oracle", "runs": len(rows)}
    for key in ("missed", "duplicated", "invented", "late"):
        figures[key] = sum(each[key] for each in rows)
    figures["rough"] = sum(each["rough"] for each in rows)
    for key in ("detections", "crashes", "cut", "refused", "dropped"):
        figures[key] = sum(each[key] for each in rows)
    figures["with_pulls"] = sum(each["pulls"] > 0 for each in rows)
    show("What agents detect, against an omniscient observer", figures, rows[:20], as_json=options.json)


if __name__ == "__main__":
    main()
