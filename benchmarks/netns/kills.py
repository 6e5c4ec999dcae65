"""Kills parts of `rove up` with `kill -9` at random times, runs `rove down`, and scans for leftovers.

Targets in turn: the radio, the orchestrator, both. All rounds use one run id, so that decoys can resemble it.
"""

import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import cycle, islice
from pathlib import Path
from typing import NamedTuple

from orchestrator.backends.netns import network
from orchestrator.backends.netns import radio as realtime
from orchestrator.backends.netns.marks import Mark
from orchestrator.cli.output import rove_command
from orchestrator.runs.run_directory import RunDirectory

NAME = "grid"
TOPOLOGY = """\
name: {name}
nodes: {nodes}
area: 2000 m x {depth} m
mobility: {{model: static, grid: {{columns: 10, spacing: 200 m}}}}
radio: {{model: 80211b}}
"""
RUN_ID = "killed"
PATIENCE_S = 20.0
LATEST_S = 2.0
"""Counted from the start of the target: by then a network of 50 nodes is up, even on a busy machine."""


class Killed(NamedTuple):
    kills: int
    found_something: int
    """Kills after which there was something to remove; the others came too early to prove anything."""
    leftovers: int
    failures: int
    """How often `rove down` did not report success, or the orchestrator survived it."""


def directory_in(root: Path) -> Path:
    """Returns the directory of the runs to be killed."""
    return root / NAME / RUN_ID


def topology(nodes: int) -> str:
    return TOPOLOGY.format(name=NAME, nodes=nodes, depth=200 * (nodes // 10 + 1))


def kill_repeatedly(root: Path, nodes: int, kills: int, seed: int) -> Killed:
    file = root / f"{NAME}.yaml"
    file.write_text(topology(nodes))
    run = RunDirectory(directory_in(root))
    mark = Mark(run.id, run.path)
    moments = random.Random(seed)
    found = left = failures = 0
    for radio, owner in islice(cycle(((True, False), (False, True), (True, True))), kills):
        process = _start(root, file)
        try:
            # The target must exist first: the orchestrator does once the run's directory does.
            _wait_until(run.path.exists if owner else lambda: bool(_radio(mark)), process)
            time.sleep(moments.uniform(0.0, LATEST_S))
            if radio:
                for pid in _radio(mark):
                    with suppress(ProcessLookupError):  # the helper ends the loop, too
                        os.kill(pid, signal.SIGKILL)
            if owner:
                process.kill()
                process.wait()
            found += bool(network.leftovers(mark))
            failures += not _taken_down(root, process)
            left += len(network.leftovers(mark))
        finally:
            process.kill()
            process.wait()
        shutil.rmtree(run.path, ignore_errors=True)
    return Killed(kills, found, left, failures)


def _wait_until(condition: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError("the network to be killed does not come up")
        time.sleep(0.005)


def _start(root: Path, file: Path) -> subprocess.Popen[bytes]:
    command = rove_command("up", str(file), "--runs-dir", str(root), "--run-id", RUN_ID)
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _radio(mark: Mark) -> list[int]:
    """Returns both processes of the radio; none if it has not started yet."""
    found = []
    for process in mark.processes():
        with suppress(OSError):
            arguments = Path(f"/proc/{process.pid}/cmdline").read_bytes().split(b"\0")
            if realtime.__name__.encode() in arguments:
                found.append(process.pid)
    return found


def _taken_down(root: Path, owner: subprocess.Popen[bytes]) -> bool:
    """Runs `rove down` for everything, living or dead; then the orchestrator must end."""
    down = rove_command("down", "--all", "--runs-dir", str(root))
    succeeded = subprocess.run(down, stdout=subprocess.DEVNULL, timeout=PATIENCE_S).returncode == 0
    with suppress(subprocess.TimeoutExpired):
        owner.wait(PATIENCE_S)
    return succeeded and owner.returncode is not None
