"""Measures what watching costs a run: throughput, the page's server, the browser.

Namespaces on this machine. ``throughput_ratio``: a chain of two operators over 25 moving nodes, offered more
than the radio carries; what sinks got while a browser showed the run and every node was scraped each 5 s,
divided by what they got while nobody looked. Both are run in turn, and the median of the rounds counts.
``page_server_cpu_share``: processor time of the page's server for each second of a run of 50 nodes that a
browser and four more streams show; ``browser_frame_ms_p95``: what a frame of that page took in the browser.
``browsers``: so many watch one run at once, and ``browsers_verdict`` is its verdict. Figures of a busy
machine say little: a run that was late is invalid.
"""

import argparse
import statistics
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.shared.harness import Figures, tell
from benchmarks.watching.processes import (
    RunProcess,
    delivered,
    mobile_experiment,
    serving,
    write_experiment,
)
from benchmarks.watching.watchers import everybody

ROUNDS = 3
SCRAPE_S = 5.0
WARMUP_S, DURATION_S = 5.0, 30.0
LARGE_S = 20.0
RATE = 30.0
SLOW_RATE = 8.0
BROWSERS = 20
END_S = 180.0


def unwatched(folder: Path, nodes: int, rate: float) -> tuple[int, str]:
    """Returns what a run delivered, and its verdict."""
    file = write_experiment(mobile_experiment(nodes, rate, WARMUP_S, DURATION_S), folder)
    run = RunProcess(file, folder / "runs")
    try:
        document = run.result(END_S)
    finally:
        run.end()
    return delivered(Path(document["directory"])), document["verdict"]


def watched(folder: Path, nodes: int, rate: float, duration: float, readers: int) -> Figures:
    """Returns what a run delivered while it was watched, and what that cost."""
    file = write_experiment(mobile_experiment(nodes, rate, WARMUP_S, duration), folder)
    with serving(folder / "runs") as server:
        run = RunProcess(file, folder / "runs")
        try:
            directory = run.directory()
            run.wait_for("warm-up", END_S)
            with everybody(server.address, directory.name, readers, SCRAPE_S) as (page, scraper):
                run.wait_for("measure", END_S)
                before, begun = server.cpu_s(), time.monotonic()
                page.wait_for_timeout((duration - 3.0) * 1000)
                share = (server.cpu_s() - before) / (time.monotonic() - begun)
                frames = sorted(page.evaluate("window.roveStats.frameMs"))
                document = run.result(END_S)
        finally:
            run.end()
    return {
        "delivered": delivered(directory),
        "verdict": document["verdict"],
        "share": share,
        "frame_ms_p95": frames[int(len(frames) * 0.95)] if frames else -1.0,
        "scrapes": scraper.scrapes,
        "failed_scrapes": scraper.failures,
    }


def measure(rounds: int) -> Figures:
    with TemporaryDirectory(prefix="rove-live-") as directory:
        folder = Path(directory)
        alone, seen, verdicts = [], [], []
        for _ in range(rounds):
            without = unwatched(folder, 25, RATE)
            alone.append(without[0])
            watching = watched(folder, 25, RATE, DURATION_S, readers=0)
            seen.append(int(watching["delivered"]))
            verdicts += [without[1], str(watching["verdict"])]
            print(f"alone {without}, watched {watching}", file=sys.stderr)
        large = watched(folder, 50, SLOW_RATE, LARGE_S, readers=4)
        print(f"50 nodes: {large}", file=sys.stderr)
        crowd = watched(folder, 25, SLOW_RATE, LARGE_S, readers=BROWSERS - 1)
        print(f"{BROWSERS} browsers: {crowd}", file=sys.stderr)
    return {
        "benchmark": "live_overhead",
        "throughput_ratio": statistics.median(seen) / statistics.median(alone),
        "worst_pair": min(b / a for a, b in zip(alone, seen, strict=True)),
        "rounds": rounds,
        "valid_runs": sum(verdict == "valid" for verdict in verdicts),
        "page_server_cpu_share": large["share"],
        "browser_frame_ms_p95": large["frame_ms_p95"],
        "verdict_50_nodes": large["verdict"],
        "browsers": BROWSERS,
        "browsers_verdict": crowd["verdict"],
        "browsers_server_cpu_share": crowd["share"],
        "scrapes": crowd["scrapes"],
        "failed_scrapes": crowd["failed_scrapes"],
    }


def main() -> None:
    description = "live_overhead: what it costs to watch a run"
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="pairs of runs")
    arguments = parser.parse_args()
    tell(description, measure(arguments.rounds), arguments.json)


if __name__ == "__main__":
    main()
