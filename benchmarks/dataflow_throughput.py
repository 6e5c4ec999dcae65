"""What the links between replicas carry: a chain of three operators on loopback, each a process of its own.

Operators pass on what they get. ``relay_ratio`` compares 32 KB tuples over links (framed, authenticated, with
credit) with the same bytes over plain asyncio streams on uvloop, in the same run; ``wide_relay_ratio`` with
streams whose buffers are larger than asyncio's. Half of what is missing there is SHA-256, once per hop.
"""

import json
import subprocess
import sys
from statistics import median

from benchmarks.dataflow.hop import LAST
from benchmarks.harness import Figures, main

LARGE, SMALL = 32 * 1024, 200
LARGE_COUNT, SMALL_COUNT, MANY = 10_000, 300_000, 1_000_000
ROUNDS = 3
TARGET_RATIO, TARGET_SMALL = 0.5, 50_000
PATIENCE_S = 300


def chain(over: str, count: int, size: int) -> list[dict[str, float]]:
    """What each process reports, from the source to the sink."""
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


def megabytes(over: str) -> float:
    return chain(over, LARGE_COUNT, LARGE)[-1]["tuples_per_second"] * LARGE / 1e6


def measure() -> Figures:
    # In turns, so that whatever else the machine does disturbs both alike.
    rounds = [[megabytes(over) for over in ("links", "streams", "wide_streams")] for _ in range(ROUNDS)]
    small = [chain("links", SMALL_COUNT, SMALL)[-1]["tuples_per_second"] for _ in range(ROUNDS)]
    many = chain("links", MANY, SMALL)
    return {
        "benchmark": "dataflow_throughput",
        "relay_ratio": median(links / streams for links, streams, _ in rounds),
        "target_relay_ratio": TARGET_RATIO,
        "wide_relay_ratio": median(links / wide for links, _, wide in rounds),
        "links_mb_per_second": median(links for links, _, _ in rounds),
        "streams_mb_per_second": median(streams for _, streams, _ in rounds),
        "small_tuples_per_second": median(small),
        "target_small_tuples": TARGET_SMALL,
        "rss_growth_bytes": max(round(each["rss_growth_bytes"]) for each in many),
        "tuples_for_rss": MANY,
    }


if __name__ == "__main__":
    main("dataflow_throughput: three operators on loopback", measure)
