"""Measures what the probe of a machine's load reads with 0, 1, 2 and 4 busy loops a core, and its own cost.

``delay_ms`` is about a control group of processes that work a little every 20 ms, as agents do. ``first``:
the loops go before all others (nice -15, needs root).

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
from orchestrator.backends.netns.control_group import create_around
from orchestrator.backends.netns.marks import Mark
from orchestrator.host_load.files import read_samples
from orchestrator.host_load.judgement import doubts, summed_up
from orchestrator.host_load.local import HostWatch

LOOPS_A_CORE = (0, 1, 2, 4)
WORKERS = 50
WORKER = """
import time
end = time.monotonic() + float({seconds})
while time.monotonic() < end:
    time.sleep(0.02)
    sum(range(2000))
"""
SECONDS = 8.0
BUSY = "import time\nend = time.monotonic() + float({seconds})\nwhile time.monotonic() < end: pass"


def measure() -> Figures:
    figures: dict[str, float | int | str] = {"benchmark": "host_load"}
    for loops, first in (*((loops, False) for loops in LOOPS_A_CORE), (4, True)):
        samples, cost = _probed(loops, first)
        load = summed_up(samples)
        if load is None:
            raise SystemExit("the probe wrote nothing")
        name = f"loops_{loops}{'_first' if first else ''}"
        if load.group_delay_ms is not None:
            figures[f"{name}_delay_ms"] = load.group_delay_ms
        if load.waited is not None:
            figures[f"{name}_waited"] = load.waited
        figures[f"{name}_late_p99_ms"] = load.late_p99_ms
        figures[f"{name}_doubts"] = len(doubts("this machine", load))
        if loops == 0:
            figures["probe_cpu_share"] = cost
    return figures


def _probed(loops_a_core: int, first: bool) -> tuple[list[LoadSample], float]:
    """Returns the samples, and the probe's processor time per second, including its start."""
    busy = [_started(BUSY) for _ in range(loops_a_core * (os.cpu_count() or 1))]
    if first:
        for process in busy:
            os.setpriority(os.PRIO_PROCESS, process.pid, -15)
    workers = [_started(WORKER) for _ in range(WORKERS)]
    group = create_around(Mark(f"benchmark-{os.getpid()}", Path("/")), workers[0].pid)
    before = _children_s()
    try:
        if group is not None:
            for worker in workers[1:]:
                (group.path / "cgroup.procs").write_text(str(worker.pid))
        with tempfile.TemporaryDirectory(prefix="rove-benchmark-") as folder:
            asyncio.run(_watch(Path(folder), group.path if group is not None else None))
            cost = _children_s() - before
            return read_samples(Path(folder) / FILE)[2:], cost / SECONDS  # workers start in the first
    finally:
        for process in (*busy, *workers):
            process.kill()
            process.wait()
        if group is not None:
            group.remove(timeout=5.0)


def _started(program: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", program.format(seconds=SECONDS + 5)])


async def _watch(directory: Path, group: Path | None) -> None:
    watch = HostWatch.start(directory, {}, group)
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
