"""The simulator dies with its orchestrator, even in code that cannot be interrupted."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

CHILD = """
import time
from orchestrator.backends.sim.worker import die_with_parent
die_with_parent()
print("ready", flush=True)
time.sleep(60)
"""
PARENT = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", sys.argv[1]], stdout=subprocess.PIPE)
child.stdout.readline()
print(child.pid, flush=True)
time.sleep(60)
"""
SOON_S = 10.0


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a child that its parent ended")
def test_the_simulator_is_killed_with_its_parent() -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT, CHILD], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        parent.kill()
    try:
        until = time.monotonic() + SOON_S
        while _runs(child) and time.monotonic() < until:
            time.sleep(0.02)
        assert not _runs(child)
    finally:
        if _runs(child):
            os.kill(child, signal.SIGKILL)


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
