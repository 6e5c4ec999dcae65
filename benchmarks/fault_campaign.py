"""What faults do to queries that promise delivery: seeded schedules over whole agents in virtual time.

Crashes with the loss of all memory, restarts, partitions, flapping and slow links, over chain, join and
fan-out queries. Half of the schedules are ``exactly_once``, the others ``at_least_once``, where repetition is
no fault. A schedule that fails is printed with its seed; ``--seed`` plays it again.
"""

import argparse
import json
import sys
import time
from statistics import median

from msgspec.structs import replace

from benchmarks.faults.schedules import Schedule, schedule
from benchmarks.faults.world import Outcome, outcome
from node_agent.model.query import Reliability

SCHEDULES = 300
SECONDS_AT_MOST = 1500.0


def level_of(seed: int) -> Reliability:
    return "exactly_once" if seed % 2 == 0 else "at_least_once"


def play(seed: int) -> tuple[Schedule, Outcome]:
    """Where repetition is allowed it is no duplicate."""
    drawn = schedule(seed, level_of(seed))
    result = outcome(drawn)
    if drawn.plan.query.reliability == "at_least_once":
        result = replace(result, duplicated=(), repeated=result.duplicated)
    return drawn, result


def told(drawn: Schedule, result: Outcome) -> str:
    faults = ", ".join(
        f"{f.what} {'-'.join(f.nodes)} at {f.at:.1f} for {f.seconds:.1f}" for f in drawn.faults
    )
    return (
        f"--seed {drawn.seed}: {drawn.query}, {drawn.plan.query.reliability}, {drawn.policy}: "
        f"{len(result.lost)} lost {result.lost[:3]}, {len(result.duplicated)} duplicated "
        f"{result.duplicated[:3]}, {len(result.mismatches)} mismatches {result.mismatches[:3]}, "
        f"{'; '.join(result.failures) or 'no agent failed'} [{faults}]"
    )


def campaign(first: int, count: int, seconds: float) -> dict[str, float | int | str]:
    began = time.monotonic()
    results: list[Outcome] = []
    for seed in range(first, first + count):
        if time.monotonic() - began > seconds:
            break
        drawn, result = play(seed)
        results.append(result)
        if not result.clean:
            print(told(drawn, result), file=sys.stderr, flush=True)
    return {
        "benchmark": "fault_campaign",
        "schedules": len(results),
        "first_seed": first,
        "lost": sum(len(each.lost) for each in results),
        "duplicated": sum(len(each.duplicated) for each in results),
        "window_mismatches": sum(len(each.mismatches) for each in results),
        "allowed_repetitions": sum(len(each.repeated) for each in results),
        "failed_agents": sum(len(each.failures) for each in results),
        "median_finish_seconds": median(each.finished_after for each in results) if results else 0.0,
        "seconds": time.monotonic() - began,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description="fault_campaign: schedules of faults in virtual time")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--seed", type=int, help="play only this schedule, and tell about it")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--schedules", type=int, default=SCHEDULES)
    parser.add_argument("--seconds", type=float, default=SECONDS_AT_MOST, help="at most, of real time")
    arguments = parser.parse_args()
    if arguments.seed is not None:
        drawn, result = play(arguments.seed)
        print(told(drawn, result))
        return 0 if result.clean else 1
    figures = campaign(arguments.first, arguments.schedules, arguments.seconds)
    if arguments.json:
        print(json.dumps(figures))
    else:
        for name, value in figures.items():
            print(f"  {name:<24}{value:>14,.3f}" if isinstance(value, float) else f"  {name:<24}{value:>14}")
    return (
        1
        if any(figures[name] for name in ("lost", "duplicated", "window_mismatches", "failed_agents"))
        else 0
    )


if __name__ == "__main__":
    sys.exit(main())
