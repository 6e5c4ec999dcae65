"""Runs a command and measures what it and everything that it started used: processor time and memory."""

import os
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
SAMPLED_EACH_S = 0.5
_PROC = Path("/proc")


class Cost(NamedTuple):
    """``peak_bytes``: the most that all processes together had in memory, by samples; pages that two of them
    share count twice.
    """

    cpu_s: float
    wall_s: float
    peak_bytes: int


class Failed(Exception):
    """The command exited with an error; the text is what it printed."""


def measure(command: Sequence[str], timeout_s: float, log: Path, cwd: Path) -> Cost:
    started = time.monotonic()
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, cwd=cwd)
    peak, used = 0, dict[tuple[int, int], float]()
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            break
        family = _family(process.pid)
        peak = max(peak, sum(each.rss_bytes for each in family))
        used |= {(each.pid, each.started): each.cpu_s for each in family}
        if time.monotonic() - started > timeout_s:
            process.kill()
            process.wait()
            raise Failed(f"{command[0]} took longer than {timeout_s:.0f} s")
        time.sleep(SAMPLED_EACH_S)
    if process.returncode:
        raise Failed(f"exit code {process.returncode}: {log.read_text(errors='replace')[-4000:]}")
    # The kernel's count misses processes that nobody waited for, the samples miss the last moments.
    cpu_s = max(usage.ru_utime + usage.ru_stime, sum(used.values()))
    return Cost(cpu_s, time.monotonic() - started, peak)


class _Process(NamedTuple):
    pid: int
    parent: int
    started: int
    cpu_s: float
    rss_bytes: int


def _family(root: int) -> list[_Process]:
    """Returns the process and all below it."""
    running = [found for path in _PROC.iterdir() if path.name.isdigit() and (found := _read(path))]
    family = {root}
    while more := {each.pid for each in running if each.parent in family} - family:
        family |= more
    return [each for each in running if each.pid in family]


def _read(path: Path) -> _Process | None:
    try:
        text = (path / "stat").read_text()
    except OSError:  # it has ended
        return None
    fields = text[text.rindex(")") + 2 :].split()
    parent, user, system, started, pages = (int(fields[place]) for place in (1, 11, 12, 19, 21))
    return _Process(int(path.name), parent, started, (user + system) / _TICKS, pages * _PAGE)
