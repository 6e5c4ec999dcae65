"""Tests what faults do to queries: seeded schedules over whole agents in virtual time.

Schedules contain crashes that lose all memory, restarts, partitions, flapping and slow links, over chain,
join and fan-out queries. By default, half of the schedules are ``exactly_once``, the others
``at_least_once``, where repetition is no fault. ``--reliability best_effort``: the records must explain every
loss. ``--tight``: tiny buffers, with every ``overflow``; only replicas that are allowed to drop may lose
tuples, and must say so. A schedule that fails is printed with the options that repeat it.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import islice
from statistics import median

from msgspec import Struct
from msgspec.structs import replace

from benchmarks.faults.schedules import OVERFLOWS, Schedule, schedule, tight_schedule
from benchmarks.faults.world import Outcome, outcome
from node_agent.apps.dataflow.model.query import Reliability

SCHEDULES = 300
SECONDS_AT_MOST = 1500.0
LEVELS: tuple[Reliability, ...] = ("exactly_once", "at_least_once", "best_effort")


class Kind(Struct, frozen=True):
    """``level``: None for both levels with guarantees, in turn."""

    level: Reliability | None = None
    tight: bool = False

    def draw(self, seed: int) -> Schedule:
        if self.tight:
            return tight_schedule(seed)
        return schedule(seed, self.level or ("exactly_once" if seed % 2 == 0 else "at_least_once"))

    def options(self) -> str:
        level = f" --reliability {self.level}" if self.level is not None else ""
        return level + (" --tight" if self.tight else "")


def play(kind: Kind, seed: int) -> tuple[Schedule, Outcome]:
    """Runs one schedule. Allowed repetitions do not count as duplicates."""
    drawn = kind.draw(seed)
    result = outcome(drawn)
    if drawn.plan.query.reliability == "at_least_once":
        result = replace(result, duplicated=(), repeated=result.duplicated)
    return drawn, result


def summary(kind: Kind, drawn: Schedule, result: Outcome) -> str:
    faults = ", ".join(
        f"{f.what} {'-'.join(f.nodes)} at {f.at:.1f} for {f.seconds:.1f}" for f in drawn.faults
    )
    found = ", ".join(
        f"{len(keys)} {name} {keys[:3]}"
        for name, keys in (
            ("lost", result.lost),
            ("duplicated", result.duplicated),
            ("mismatches", result.mismatches),
            ("unexplained", result.unexplained),
        )
    )
    room = f", {drawn.tight.overflow} at {drawn.tight.items}" if drawn.tight is not None else ""
    return (
        f"--seed {drawn.seed}{kind.options()}: {drawn.query}, {drawn.plan.query.reliability}, {drawn.policy}"
        f", {drawn.mode}{room}: {found}, {'; '.join(result.failures) or 'no agent failed'} [{faults}]"
    )


def played(
    kind: Kind, first: int, count: int, seconds: float, jobs: int
) -> Iterator[tuple[Schedule, Outcome]]:
    """Yields outcomes in order, until the time is up."""
    began, seeds = time.monotonic(), iter(range(first, first + count))
    with ProcessPoolExecutor(jobs) as pool:
        running = [pool.submit(play, kind, seed) for seed in islice(seeds, 2 * jobs)]
        while running:
            yield running.pop(0).result()
            if time.monotonic() - began < seconds:
                running += [pool.submit(play, kind, seed) for seed in islice(seeds, 1)]


def campaign(kind: Kind, first: int, count: int, seconds: float, jobs: int) -> dict[str, float | int | str]:
    began = time.monotonic()
    all_played = []
    for drawn, result in played(kind, first, count, seconds, jobs):
        all_played.append((drawn, result))
        if not result.clean:
            print(summary(kind, drawn, result), file=sys.stderr, flush=True)
    results = [result for _, result in all_played]
    by_overflow = {
        f"lost_with_{overflow}{'' if wait else '_and_sources_that_drop'}": sum(
            len(result.lost)
            for drawn, result in all_played
            if (drawn.limits.overflow, drawn.limits.sources_wait) == (overflow, wait)
        )
        for overflow in (OVERFLOWS if kind.tight else ())
        for wait in (True, False)
    }
    return {
        "benchmark": "fault_campaign",
        "kind": kind.options().strip() or "at_least_once and exactly_once",
        "schedules": len(results),
        "first_seed": first,
        "lost": sum(len(each.lost) for each in results),
        "duplicated": sum(len(each.duplicated) for each in results),
        "window_mismatches": sum(len(each.mismatches) for each in results),
        "unexplained": sum(len(each.unexplained) for each in results),
        "allowed_repetitions": sum(len(each.repeated) for each in results),
        "failed_agents": sum(len(each.failures) for each in results),
        **by_overflow,
        "median_finish_seconds": median(each.finished_after for each in results) if results else 0.0,
        "seconds": time.monotonic() - began,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description="fault_campaign: schedules of faults in virtual time")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--reliability", choices=LEVELS, help="only this one")
    parser.add_argument("--tight", action="store_true", help="small limits, of all overflow policies in turn")
    parser.add_argument("--seed", type=int, help="play only this schedule, and tell about it")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--schedules", type=int, default=SCHEDULES)
    parser.add_argument("--seconds", type=float, default=SECONDS_AT_MOST, help="at most, of real time")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1), help="processes")
    arguments = parser.parse_args()
    if arguments.tight and arguments.reliability not in (None, "exactly_once"):
        parser.error("--tight is about exactly_once")
    kind = Kind(arguments.reliability, arguments.tight)
    if arguments.seed is not None:
        drawn, result = play(kind, arguments.seed)
        print(summary(kind, drawn, result))
        return 0 if result.clean else 1
    figures = campaign(kind, arguments.first, arguments.schedules, arguments.seconds, arguments.jobs)
    if arguments.json:
        print(json.dumps(figures))
    else:
        for name, value in figures.items():
            print(f"  {name:<44}{value:>14,.3f}" if isinstance(value, float) else f"  {name:<44}{value:>14}")
    return 1 if any(figures[name] for name in ("unexplained", "duplicated", "failed_agents")) else 0


if __name__ == "__main__":
    sys.exit(main())
