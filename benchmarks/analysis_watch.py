"""Measures how soon a run's results are there, once it has ended, while ``rove analyze --watch`` is up.

A short run in virtual time is analysed by a watch that has just started, then copies of it are put into place
one after the other, whole, by renaming, as a run that gets its verdict. For each: seconds until its summary
is printed, and processor seconds of all processes of the watch. At the end Ctrl-C: it must end in order.

- ``first_s``: from the start of the command to the first results, with Spark's start.
- ``next_s``, ``next_cpu_s``: medians of the later runs.
- ``idle_cpu_percent``: of one core, while nothing happens.
- ``end_s``, ``exit_code``: after Ctrl-C.
"""

import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.analysing.measuring import processor_seconds
from benchmarks.ingest_kill import EXPERIMENT, ROOT, ROVE
from benchmarks.shared.harness import Figures, main

COPIES = 6
IDLE_S = 10.0
PATIENCE_S = 600.0


def measured() -> Figures:
    with TemporaryDirectory(prefix="rove-watch-") as folder:
        return watched(Path(folder))


def watched(folder: Path) -> Figures:
    runs, original = folder / "runs", made_run(folder)
    copied(original, runs, 0)
    began = time.monotonic()
    watch = subprocess.Popen(
        [*ROVE, "analyze", "--watch", "--json", "--runs-dir", str(runs)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert watch.stdout is not None
    try:
        json.loads(watch.stdout.readline())
        first_s = time.monotonic() - began
        waited, used = [], []
        for number in range(1, COPIES + 1):
            before = processor_seconds(watch.pid)
            place = copied(original, runs, number)
            begin = time.monotonic()
            assert json.loads(watch.stdout.readline())["run"] == place.name
            waited.append(time.monotonic() - begin)
            used.append(processor_seconds(watch.pid) - before)
        before = processor_seconds(watch.pid)
        time.sleep(IDLE_S)
        idle = processor_seconds(watch.pid) - before
        begin = time.monotonic()
        watch.send_signal(signal.SIGINT)
        code = watch.wait(PATIENCE_S)
        end_s = time.monotonic() - begin
    finally:
        watch.kill()
        watch.wait()
    return {
        "runs": COPIES,
        "first_s": first_s,
        "next_s": statistics.median(waited),
        "next_s_longest": max(waited),
        "next_cpu_s": statistics.median(used),
        "last_cpu_s": used[-1],
        "idle_cpu_percent": 100 * idle / IDLE_S,
        "end_s": end_s,
        "exit_code": code,
        "cores": len(os.sched_getaffinity(0)),
    }


def made_run(folder: Path) -> Path:
    """Runs one cell of the experiment of ``ingest_kill``; returns its directory."""
    file = folder / "one.yaml"
    file.write_text(json.dumps({key: value for key, value in EXPERIMENT.items() if key != "sweep"}))
    arguments = ("run", str(file), "--no-analyze", "--run-id", "one", "--runs-dir", str(folder / "original"))
    done = subprocess.run([*ROVE, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S)
    if done.returncode:
        sys.exit(f"rove run exited with {done.returncode}\n{done.stdout}{done.stderr}")
    return folder / "original" / str(EXPERIMENT["name"]) / "one"


def copied(original: Path, runs: Path, number: int) -> Path:
    """Puts a copy under another name into place."""
    place = runs / str(EXPERIMENT["name"]) / f"copy{number}"
    half = runs.parent / f"half{number}"
    shutil.copytree(original, half)
    place.parent.mkdir(parents=True, exist_ok=True)
    half.rename(place)
    return place


if __name__ == "__main__":
    main(__doc__.partition("\n")[0], measured)
