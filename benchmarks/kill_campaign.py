"""Tests exactly-once queries with `kill -9`: agents are killed and restarted, over the emulated radio.

Runs seeded schedules of chain, window, join and fan-out queries on ten nodes in namespaces, standing or
walking, with our OLSR, and kills and restarts agents of replicas while tuples flow. It compares what the
sinks wrote down with what the query gives in one process. Windows are counted, not timed: the content of a
time window depends on the clock and has no counterpart there. A schedule that fails is printed with its seed;
``--seed`` repeats it.
"""

import argparse
import json
import os
import sys
import time
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec import Struct

from benchmarks.killing.queries import captured
from benchmarks.killing.schedules import TUPLES, schedule
from benchmarks.shared.runs import leftovers, own_reasons, perform
from node_agent.apps.dataflow import testing
from orchestrator.runs.files import parse_lines
from orchestrator.spec.experiment import Experiment
from tests.unit.specs import section

SCHEDULES = 20
SECONDS_AT_MOST = 1500.0

Result = tuple[str, str]
"""A sink, and what it got."""


class Outcome(Struct, frozen=True):
    """``late``: the emulated radio was late; the guarantee holds all the same."""

    kills: int
    lost: tuple[Result, ...]
    duplicated: tuple[Result, ...]
    mismatches: tuple[Result, ...]
    reasons: tuple[str, ...]
    left: int
    late: bool

    @property
    def clean(self) -> bool:
        return not (self.lost or self.duplicated or self.mismatches or self.reasons or self.left)


def expected(calm: Experiment, tuples: int) -> list[Result]:
    """Returns what sinks get if nothing goes wrong, nor takes any time."""
    query = section(calm).dataflow()
    streams = {name: [captured(name, tau) for tau in range(1, tuples + 1)] for name in query.sources()}
    results = testing.run(query, streams)
    return [(sink, payload.decode()) for sink, payloads in results.items() for payload in payloads]


def play(seed: int, root: Path, kills: int | None = None, tuples: int = TUPLES) -> Outcome:
    wanted = expected(schedule(seed, None, kills, tuples), tuples)
    assert len(set(wanted)) == len(wanted), "results do not tell positions apart"
    given_to = root / f"given-{seed}"
    given_to.mkdir(parents=True)
    run = perform(schedule(seed, given_to, kills, tuples), root, f"kills-{seed}")
    given = Counter(
        (file.name, line) for file in given_to.iterdir() for line in file.read_text().splitlines()
    )
    events = parse_lines(run.directory.events.read_bytes())
    reasons = own_reasons(run)
    return Outcome(
        kills=sum(event["kind"] == "fault" and event["action"] == "crash" for event in events),
        lost=tuple(result for result in wanted if result not in given),
        duplicated=tuple(result for result, times in given.items() if times > 1),
        mismatches=tuple(result for result in given if result not in set(wanted)),
        reasons=reasons,
        left=leftovers(run),
        late=len(reasons) < len(run.verdict.reasons),
    )


def summary(seed: int, result: Outcome) -> str:
    drawn = schedule(seed, Path("given"))
    faults = ", ".join(
        f"{fault.target.part('query')} at {fault.at:g} for {fault.seconds:g}"
        for fault in drawn.faults
        if fault.target is not None
    )
    run = section(drawn)
    return (
        f"--seed {seed}: {run.dataflow().name}, {run.switching.policy}: {len(result.lost)} lost "
        f"{result.lost[:3]}, {len(result.duplicated)} duplicated {result.duplicated[:3]}, "
        f"{len(result.mismatches)} mismatches {result.mismatches[:3]}, {result.left} left behind, "
        f"{'; '.join(result.reasons) or 'no node failed'} [killed: {faults}]"
    )


def campaign(first: int, count: int, seconds: float, root: Path) -> dict[str, float | int | str]:
    began = time.monotonic()
    results: list[Outcome] = []
    for seed in range(first, first + count):
        if time.monotonic() - began > seconds:
            break
        result = play(seed, root)
        results.append(result)
        if not result.clean:
            print(summary(seed, result), file=sys.stderr, flush=True)
    return {
        "benchmark": "kill_campaign",
        "schedules": len(results),
        "first_seed": first,
        "kills": sum(each.kills for each in results),
        "lost": sum(len(each.lost) for each in results),
        "duplicated": sum(len(each.duplicated) for each in results),
        "window_mismatches": sum(len(each.mismatches) for each in results),
        "failed_runs": sum(bool(each.reasons) for each in results),
        "leftovers": sum(each.left for each in results),
        "late_radios": sum(each.late for each in results),
        "seconds": time.monotonic() - began,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description="kill_campaign: agents killed for real, in namespaces")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--seed", type=int, help="play only this schedule, and tell about it")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--schedules", type=int, default=SCHEDULES)
    parser.add_argument("--seconds", type=float, default=SECONDS_AT_MOST, help="at most, of real time")
    parser.add_argument("--keep", type=Path, help="keep the runs' directories here")
    arguments = parser.parse_args()
    if os.geteuid() != 0:
        print("kill_campaign needs root, for network namespaces", file=sys.stderr)
        return 1
    with TemporaryDirectory(prefix="rove-kills-") as directory:
        root = (arguments.keep or Path(directory)).resolve()
        if arguments.seed is not None:
            result = play(arguments.seed, root)
            print(summary(arguments.seed, result))
            return 0 if result.clean else 1
        figures = campaign(arguments.first, arguments.schedules, arguments.seconds, root)
    if arguments.json:
        print(json.dumps(figures))
    else:
        for name, value in figures.items():
            print(f"  {name:<24}{value:>14,.3f}" if isinstance(value, float) else f"  {name:<24}{value:>14}")
    faults = ("lost", "duplicated", "window_mismatches", "failed_runs", "leftovers")
    return 1 if any(figures[name] for name in faults) else 0


if __name__ == "__main__":
    sys.exit(main())
