"""Moves operators between hosts while events flow, and compares what sinks get with a run without migration.

Random operators, streams, migrations (live and stop-and-copy) and delays; in every third run the source, the
target or the coordinator of a migration is killed in the middle, and comes back with its journal, or never,
or long after it was taken for gone. ``lost``, ``duplicated``, ``reordered``: outputs at sinks. ``hosts``:
runs after which not exactly one host runs the operator. ``unfinished``: migrations that have no end although
the coordinator lives. ``migrations``: those after which another host was the owner.
"""

import argparse
import sys
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from typing import Any

from benchmarks.migration.world import Network, Outcome, World, with_kill, world
from benchmarks.radio.report import Row, show

RUNS = 500
WRONG = ("lost", "duplicated", "reordered", "hosts", "unfinished")


def row(seed: int) -> Row:
    made = world(seed)
    still = Network(replace(made, migrations=0)).run()
    moved = Network(made).run()
    if seed % 3 == 2:
        made = with_kill(made, moved.steps)
        moved = Network(made).run()
    return {"seed": seed, **described(made, moved), **compared(still, moved)}


def described(made: World, moved: Outcome) -> dict[str, Any]:
    notes = Counter(note.what for note in moved.notes)
    kill = made.kill if moved.killed else None
    fate = "" if kill is None else "never" if kill.back is None else "later" if kill.mourned else "soon"
    return {
        "operator": made.rule.kind,
        "killed": kill.victim if kill is not None else "",
        "back": fate,
        "migrations": len({note.migration for note in moved.notes if note.what == "took_over"}),
        "begun": notes["began"],
        "deadlines_missed": notes["deadline_missed"],
        "appointed": sum(note.detail == "appointed" for note in moved.notes),
        "messages": moved.messages,
        "outputs": sum(map(len, moved.delivered.values())),
    }


def compared(still: Outcome, moved: Outcome) -> dict[str, int]:
    found = dict.fromkeys(WRONG, 0)
    for sink, expected in still.delivered.items():
        got = moved.delivered[sink]
        wanted, had = Counter(expected), Counter(got)
        found["lost"] += sum((wanted - had).values())
        found["duplicated"] += sum((had - wanted).values())
        place = {output: number for number, output in enumerate(expected)}
        places = [place[output] for output in dict.fromkeys(got) if output in place]
        found["reordered"] += sum(one > other for one, other in pairwise(places))
    found["hosts"] = int(len(moved.owners) != 1)
    found["unfinished"] = int(moved.open_phase != "idle")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--runs", type=int, default=RUNS, help=f"(default: {RUNS})")
    parser.add_argument("--first", type=int, default=0, help="seed of the first one")
    options = parser.parse_args()
    rows: list[Row] = []
    for seed in range(options.first, options.first + options.runs):
        rows.append(row(seed))
        if any(rows[-1][key] for key in WRONG):
            print(rows[-1], file=sys.stderr, flush=True)
        if len(rows) % 100 == 0:
            print(f"{len(rows)} runs", file=sys.stderr, flush=True)
    sums = ("migrations", "begun", "deadlines_missed", "appointed", "messages", "outputs")
    figures: dict[str, Any] = {"benchmark": "migration_oracle", "runs": len(rows)}
    figures |= {key: sum(each[key] for each in rows) for key in (*WRONG, *sums)}
    for victim in ("source", "target", "coordinator"):
        figures[f"killed_{victim}"] = sum(each["killed"] == victim for each in rows)
    figures["killed"] = sum(bool(each["killed"]) for each in rows)
    figures["never_back"] = sum(each["back"] == "never" for each in rows)
    show("migration_oracle: operators that move while events flow", figures, rows[:20], as_json=options.json)


if __name__ == "__main__":
    main()
