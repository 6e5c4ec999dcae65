"""Measures what the probe of a machine's load reads with 0, 1, 2 and 4 busy loops a core, and its own cost.

The limits of a run in real time are based on these figures: see docs/radio.md, "Did the host keep up".
"""

import asyncio
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.shared.harness import Figures, main
from node_agent.model.host_load import FILE, LoadSample
from orchestrator.host_load.files import read_samples
from orchestrator.host_load.judgement import doubts, summed_up
from orchestrator.host_load.local import HostWatch

LOOPS_A_CORE = (0, 1, 2, 4)
SECONDS = 8.0
BUSY = "import time\nend = time.monotonic() + float({seconds})\nwhile time.monotonic() < end: pass"


def measure() -> Figures:
    figures: dict[str, float | int | str] = {"benchmark": "host_load"}
    for loops in LOOPS_A_CORE:
        samples, cost = _probed(loops)
        load = summed_up(samples)
        if load is None:
            raise SystemExit("the probe wrote nothing")
        name = f"loops_{loops}"
        if load.waited is not None:
            figures[f"{name}_waited"] = load.waited
        figures[f"{name}_late_p99_ms"] = load.late_p99_ms
        figures[f"{name}_doubts"] = len(doubts("this machine", load))
        if loops == 0:
            figures["probe_cpu_share"] = cost
    return figures


def _probed(loops_a_core: int) -> tuple[list[LoadSample], float]:
    """Returns the samples, and the probe's processor time per second, including its start."""
    busy = [
        subprocess.Popen([sys.executable, "-c", BUSY.format(seconds=SECONDS + 3)])
        for _ in range(loops_a_core * (os.cpu_count() or 1))
    ]
    before = _children_s()
    try:
        with tempfile.TemporaryDirectory(prefix="rove-benchmark-") as folder:
            asyncio.run(_watch(Path(folder)))
            cost = _children_s() - before
            return read_samples(Path(folder) / FILE)[1:], cost / SECONDS
    finally:
        for process in busy:
            process.kill()
            process.wait()


async def _watch(directory: Path) -> None:
    watch = HostWatch.start(directory, {}, None)
    try:
        await watch.begun()
        await asyncio.sleep(SECONDS)
    finally:
        await watch.close()


def _children_s() -> float:
    """Returns the time of processes that have ended and were waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main("The probe of a machine's load", measure)
