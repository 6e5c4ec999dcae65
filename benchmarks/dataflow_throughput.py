"""Measures the throughput of a chain of three operators on loopback, each a process that passes on what it
gets.

Runs whole agents, as on nodes, at each reliability level; overall figures are those of the slowest level.
``relay_ratio`` compares tuples of 32 KB with the same bytes over plain asyncio streams on uvloop, in the same
run; ``small_tuples_per_second`` are tuples of 200 bytes; ``rss_growth_bytes`` is that of the agent that grew
most, after the first tenth. Figures per CPU time say what two cores could carry without other load.
``links_…`` is the transport alone: framed, authenticated, with credit; ``wide_streams_…`` plain streams with
larger buffers than asyncio's.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

from benchmarks.dataflow.agents import Flow, flow
from benchmarks.dataflow.hop import LAST
from benchmarks.shared.harness import Figures, tell
from node_agent.apps.dataflow.model.query import Reliability

LEVELS: tuple[Reliability, ...] = ("best_effort", "exactly_once")
LARGE, SMALL = 32 * 1024, 200
LARGE_COUNT, SMALL_COUNT, MANY = 5_000, 200_000, 1_000_000
ROUNDS = 3
CORES = 2
TARGET_RATIO, TARGET_SMALL = 0.5, 50_000
PATIENCE_S = 300
MEMORY_S = 120

Reports = list[dict[str, float]]


def chain(over: str, count: int, size: int) -> Reports:
    """Returns what each process without an agent reports, from the source to the sink."""
    processes: list[subprocess.Popen[str]] = []
    port = 0
    try:
        for place in range(LAST, -1, -1):
            task = [over, *map(str, (place, port, count, size))]
            command = [sys.executable, "-m", "benchmarks.dataflow.hop", *task]
            processes.insert(0, subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
            if place > 0:
                assert processes[0].stdout is not None
                port = int(processes[0].stdout.readline())
        return [json.loads(each.communicate(timeout=PATIENCE_S)[0]) for each in processes]
    finally:
        for each in processes:
            each.kill()
            each.wait()


def speed(reports: Reports) -> float:
    return reports[-1]["tuples_per_second"]


def cpu_us(reports: Reports) -> float:
    """Returns the CPU time of a tuple in all processes together."""
    return sum(each["cpu_us_per_tuple"] for each in reports)


class Round(NamedTuple):
    """One round of measurements. They take turns, so that other load on the machine disturbs all alike."""

    plain: dict[str, Reports]
    flows: dict[Reliability, Flow]

    @classmethod
    def of(cls, overs: Sequence[str], count: int, size: int) -> "Round":
        plain = {over: chain(over, count, size) for over in overs}
        return cls(plain, {level: flow(level, count, size, PATIENCE_S) for level in LEVELS})


def large() -> Figures:
    overs = ("streams", "wide_streams", "links")
    rounds = [Round.of(overs, LARGE_COUNT, LARGE) for _ in range(ROUNDS)]
    streams = [each.plain["streams"] for each in rounds]
    links = [each.plain["links"] for each in rounds]
    figures: dict[str, float] = {}
    for level in LEVELS:
        flows = zip([each.flows[level] for each in rounds], streams, strict=True)
        ratios = [
            (our.tuples_per_second / speed(their), cpu_us(their) / sum(our.cpu_us)) for our, their in flows
        ]
        figures[f"{level}_relay_ratio"] = median(wall for wall, _ in ratios)
        figures[f"{level}_relay_cpu_ratio"] = median(cpu for _, cpu in ratios)
    both = list(zip(links, streams, strict=True))
    return {
        "relay_ratio": min(figures[f"{level}_relay_ratio"] for level in LEVELS),
        "target_relay_ratio": TARGET_RATIO,
        **figures,
        "links_relay_ratio": median(speed(our) / speed(their) for our, their in both),
        "links_relay_cpu_ratio": median(cpu_us(their) / cpu_us(our) for our, their in both),
        **{
            f"{over}_mb_per_second": median(speed(each.plain[over]) for each in rounds) * LARGE / 1e6
            for over in overs
        },
    }


def small() -> dict[str, float]:
    rounds = [Round.of(("links",), SMALL_COUNT, SMALL) for _ in range(ROUNDS)]
    links = [each.plain["links"] for each in rounds]
    figures: dict[str, float] = {}
    for level in LEVELS:
        flows = [each.flows[level] for each in rounds]
        figures[f"{level}_small_tuples_per_second"] = median(each.tuples_per_second for each in flows)
        figures[f"{level}_small_per_{CORES}_cpu_s"] = median(CORES * 1e6 / sum(each.cpu_us) for each in flows)
        figures[f"{level}_log_bytes_per_tuple"] = median(each.log_bytes for each in flows)
    return {
        "small_tuples_per_second": min(figures[f"{level}_small_tuples_per_second"] for level in LEVELS),
        "target_small_tuples": TARGET_SMALL,
        **figures,
        "links_small_tuples_per_second": median(map(speed, links)),
        f"links_small_per_{CORES}_cpu_s": median(CORES * 1e6 / cpu_us(each) for each in links),
    }


def memory(tuples: int, per_second: float) -> Figures:
    """Measures memory with about as many tuples as can pass in the time."""
    count = min(tuples, round(per_second * MEMORY_S))
    grown = {level: flow(level, count, SMALL, 3 * MEMORY_S).rss_growth for level in LEVELS}
    return {
        "rss_growth_bytes": max(grown.values()),
        **{f"{level}_rss_growth_bytes": growth for level, growth in grown.items()},
        "tuples_for_rss": count,
    }


def main() -> None:
    description = "dataflow_throughput: three operators on loopback"
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--tuples", type=int, default=MANY, help="at most, of the memory run")
    arguments = parser.parse_args()
    of_small = small()
    figures = {
        "benchmark": "dataflow_throughput",
        **large(),
        **of_small,
        **memory(arguments.tuples, of_small["small_tuples_per_second"]),
    }
    tell(description, figures, arguments.json)


if __name__ == "__main__":
    main()
