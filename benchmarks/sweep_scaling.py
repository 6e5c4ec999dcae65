"""Measures how much faster a sweep is on two executors of a standalone Spark cluster than on one.

``speedup_2_executors`` is the ratio of the times per accepted run; what starts once (Spark, the executors'
Pythons) is not in them. ``speedup_whole_command`` has all of
`rove sweep`. ``differences``: runs whose telemetry is not the same on both, byte for byte. The executors are
processes of this machine, with a core each: with other load beside them, or on less than two free cores, the
figure says nothing.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.shared.harness import tell
from orchestrator.runs.files import read_lines, read_object
from orchestrator.runs.run_directory import RunDirectory
from orchestrator.spec.dump import to_yaml
from tests.spark.standalone import standalone

RUNS = 200
SECONDS = 10
TIMEOUT_S = 7200.0
TARGET = 1.7
EXPERIMENT: dict[str, Any] = {
    "name": "scaling",
    "backend": "sim",
    "topology": {
        "name": "walk",
        "nodes": 8,
        "area": "500 m x 500 m",
        "mobility": {"model": "random_waypoint", "speed": "5 m/s"},
        "radio": {"model": "disc", "range": "300 m", "bandwidth": "11 Mb/s", "latency": "1 ms"},
    },
    "routing": "ground_truth",
    "query": "synthetic_chain",
    "replicas": 2,
    "placement": {"policy": "random", "seed": 1},
}


class Measured(NamedTuple):
    cells_s: float
    whole_s: float
    sweep: RunDirectory


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--runs", type=int, default=RUNS, help="cells of the sweep")
    parser.add_argument("--seconds", type=int, default=SECONDS, help="virtual seconds of each")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="rove-scaling-") as folder:
        figures = measured(Path(folder), arguments.runs, arguments.seconds)
    tell("A sweep in virtual time on one and on two executors", figures, arguments.json)


def measured(folder: Path, runs: int, seconds: int) -> dict[str, float | int | str]:
    document = {**EXPERIMENT, "duration": seconds, "sweep": {"seed": list(range(1, runs + 1))}}
    file = folder / "scaling.yaml"
    file.write_text(to_yaml(document))
    taken = {}
    for executors in (1, 2):
        with standalone(folder / f"cluster-{executors}", executors) as cluster:
            taken[executors] = sweep(file, folder / f"runs-{executors}", cluster.url)
    one, two = taken[1], taken[2]
    return {
        "runs": runs,
        "one_executor_s": one.cells_s,
        "two_executors_s": two.cells_s,
        "speedup_2_executors": one.cells_s / two.cells_s,
        "speedup_whole_command": one.whole_s / two.whole_s,
        "target": TARGET,
        "differences": differences(one.sweep, two.sweep),
        "cores": len(os.sched_getaffinity(0)),
    }


def sweep(file: Path, root: Path, master: str) -> Measured:
    """Runs the sweep; raises if a run is not valid."""
    started = time.monotonic()
    command = [sys.executable, "-m", "orchestrator.cli.main", "sweep", str(file), "--on", master]
    ended = subprocess.run(
        [*command, "--runs-dir", str(root), "--run-id", "r1", "--no-analyze", "--json"],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )
    whole = time.monotonic() - started
    if ended.returncode:
        raise SystemExit(f"the sweep failed: {ended.stderr}")
    run = RunDirectory(Path(json.loads(ended.stdout)["directory"]))
    return Measured(_cells_s(run), whole, run)


def _cells_s(sweep: RunDirectory) -> float:
    """Returns the seconds for all runs, by the sweep's events, without those before the third one: each
    executor's first run also starts its Python."""
    times = [datetime.fromisoformat(e["t"]) for e in read_lines(sweep.events) if e.get("kind") == "run"]
    skipped = min(2, len(times) - 2)
    span = (times[-1] - times[skipped - 1]).total_seconds()
    return span * len(times) / (len(times) - skipped)


def differences(one: RunDirectory, two: RunDirectory) -> int:
    """Counts runs of which the manifests name other files, or other contents."""
    pairs = zip(one.members(), two.members(), strict=True)
    return sum(read_object(a.manifest)["files"] != read_object(b.manifest)["files"] for a, b in pairs)


if __name__ == "__main__":
    main()
