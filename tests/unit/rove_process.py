"""The real `rove` in a process of its own, to be watched, interrupted and killed."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from orchestrator.lifecycle import teardown
from orchestrator.runs import processes, run_directory
from orchestrator.runs.files import parse_lines
from orchestrator.runs.run_directory import RunDirectory

LINE = Path(__file__).parents[2] / "experiments" / "line.yaml"
PATIENCE_S = 120.0  # of a busy machine; what never comes is ended by the test's timeout
RUN_ID = "r1"


def rove(root: Path, *arguments: str, timeout: float = PATIENCE_S) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*arguments), env=environment(root), capture_output=True, text=True, timeout=timeout
    )


def start(root: Path, file: Path, *options: str, run_id: str = RUN_ID) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command("run", str(file), "--run-id", run_id, *options),
        env=environment(root),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "orchestrator.cli.main", *arguments]


def environment(root: Path) -> dict[str, str]:
    return {**os.environ, "ROVE_RUNS_DIR": str(root), "COLUMNS": "200"}


def experiment_file(directory: Path, without: Collection[str] = (), **changes: Any) -> Path:
    """The experiment ``line`` with other values; with a large duration it can be caught in any phase.

    Without a routing protocol, if none is named: what these tests look at would only come later.
    """
    from orchestrator.planning.load import load_experiment
    from orchestrator.spec.dump import to_yaml

    file = directory / "experiment.yaml"
    known = {key: value for key, value in load_experiment(LINE).resolved().items() if key not in without}
    file.write_text(to_yaml({**known, "expect": [], "routing": "ground_truth", **changes}))
    return file


def wait_until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain: {what}"
        time.sleep(0.01)


def wait_for_phase(run: RunDirectory, phase: str) -> None:
    wait_until(lambda: phase in phases(run), f"{run.id} reaches {phase}")


def phases(run: RunDirectory) -> list[str]:
    """The phases that were entered so far."""
    if not run.events.exists():
        return []
    events = parse_lines(run.events.read_bytes())
    return [event["phase"] for event in events if event["kind"] == "phase" and event["state"] == "started"]


def verdict(run: RunDirectory) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(run.verdict.read_text())
    return document


def finish(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=PATIENCE_S)
    return process.returncode, out, err


def marked(run: RunDirectory) -> list[int]:
    return [process.pid for process in processes.marked(run.id, run.path)]


@contextmanager
def run_under_test(root: Path) -> Iterator[RunDirectory]:
    """Where it will be; whatever a failed test leaves is taken down."""
    try:
        yield RunDirectory(root / "line" / RUN_ID)
    finally:
        for left in run_directory.all_runs(root):
            if teardown.state_of(left) is not teardown.State.FINISHED:
                teardown.tear_down(left, teardown.stop_orchestrator(left, patience=1.0))
