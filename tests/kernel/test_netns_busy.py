"""A machine that is too busy for its run makes the run invalid, though the radio has priority over others."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from orchestrator.runs.run_directory import RunDirectory
from tests.kernel.test_netns_run import root_of
from tests.unit.rove_process import experiment_file, finish, start, verdict, wait_for_phase

BUSY_A_CORE = 4
FIRST = -15
TOO_BUSY = "this machine was too busy: the run's own processes waited for a processor"


@contextmanager
def busy_machine() -> Iterator[None]:
    """Four processes a core that never sleep and go before the run's processes."""
    cores = len(os.sched_getaffinity(0))
    command = [sys.executable, "-c", "while True: pass"]
    loops = [subprocess.Popen(command, start_new_session=True) for _ in range(BUSY_A_CORE * cores)]
    for loop in loops:
        os.setpriority(os.PRIO_PROCESS, loop.pid, FIRST)
        group = Path(f"/proc/{loop.pid}/autogroup")
        if group.exists():  # the kernel then shares processors between sessions first
            group.write_text(str(FIRST))
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def ended(run: RunDirectory, file: Path, busy: bool) -> list[str]:
    """Why the run is invalid; the machine is busy while it measures."""
    with start(root_of(run), file, "--no-analyze") as process:
        wait_for_phase(run, "measure")
        if busy:
            with busy_machine():
                wait_for_phase(run, "stop")
        finish(process)
    reasons: list[str] = verdict(run)["reasons"]
    return reasons


def test_a_saturated_machine_makes_the_run_invalid(tmp_path: Path, run: RunDirectory) -> None:
    file = experiment_file(tmp_path, backend="netns", warmup="1s", duration="6s")
    assert any(reason.startswith(TOO_BUSY) for reason in ended(run, file, busy=True))
    assert verdict(run)["verdict"] == "invalid"
    load = json.loads(run.manifest.read_text())["host_load"]["this machine"]
    assert load["waited"] > 0.5 and load["group_delay_ms"] > 1.0
    assert load["wake_ups"] > 50


def test_a_run_that_fits_has_its_figures_and_only_the_doubts_that_they_give(
    tmp_path: Path, run: RunDirectory
) -> None:
    """Others may be at work on this machine: then the figures say so, too."""
    file = experiment_file(tmp_path, backend="netns", warmup="1s", duration="4s")
    reasons = ended(run, file, busy=False)
    load = json.loads(run.manifest.read_text())["host_load"]["this machine"]
    assert 2.0 < load["seconds"] < 10.0
    too_busy = load["group_delay_ms"] > 1.0 or load["late"] > 0.01 * load["wake_ups"]
    if not too_busy:
        assert not any(reason.startswith("this machine") for reason in reasons)
