"""Runs a command and measures what it and everything that it started used: processor time and memory."""

import os
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
SAMPLED_EACH_S = 0.5
_PROC = Path("/proc")
JVM = "java"
COMPILERS, COLLECTOR = ("C1 Compiler", "C2 Compiler"), ("GC Thread", "G1 ", "VM Thread")
"""How the names of threads of a JVM begin that compile, and that collect garbage."""


class Cost(NamedTuple):
    """``peak_bytes``: the most that all processes together had in memory, by samples; pages that two of them
    share count twice. ``parts``: where the processor time went, by samples: the command's own process, the
    JVM without its compilers and collector, these two, and all other processes.
    """

    cpu_s: float
    wall_s: float
    peak_bytes: int
    parts: Mapping[str, float]


class Failed(Exception):
    """The command exited with an error; the text is what it printed."""


def measure(command: Sequence[str], timeout_s: float, log: Path, cwd: Path) -> Cost:
    started = time.monotonic()
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, cwd=cwd)
    peak, used = 0, dict[tuple[int, int], _Process]()
    threads: dict[tuple[int, str], tuple[str, float]] = {}
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            break
        family = _family(process.pid)
        peak = max(peak, sum(each.rss_bytes for each in family))
        used |= {(each.pid, each.started): each for each in family}
        for each in family:
            if each.name == JVM:
                threads |= _threads(each.pid)
        if time.monotonic() - started > timeout_s:
            process.kill()
            process.wait()
            raise Failed(f"{command[0]} took longer than {timeout_s:.0f} s")
        time.sleep(SAMPLED_EACH_S)
    if process.returncode:
        raise Failed(f"exit code {process.returncode}: {log.read_text(errors='replace')[-4000:]}")
    # The kernel's count misses processes that nobody waited for, the samples miss the last moments.
    cpu_s = max(usage.ru_utime + usage.ru_stime, sum(each.cpu_s for each in used.values()))
    parts = divided(process.pid, used.values(), threads.values())
    return Cost(cpu_s, time.monotonic() - started, peak, parts)


def processor_seconds(root: int) -> float:
    """Returns what the process and those below it have used so far, without those that have ended."""
    return sum(each.cpu_s for each in _family(root))


class _Process(NamedTuple):
    pid: int
    name: str
    parent: int
    started: int
    cpu_s: float
    rss_bytes: int


def divided(
    root: int, processes: Iterable[_Process], threads: Iterable[tuple[str, float]]
) -> dict[str, float]:
    """Divides processor time. ``threads``: of all JVMs, by name."""
    found = dict.fromkeys(("own", "jvm", "compilers", "collector", "others"), 0.0)
    for each in processes:
        found["own" if each.pid == root else "jvm" if each.name == JVM else "others"] += each.cpu_s
    for name, cpu_s in threads:
        for part, beginnings in (("compilers", COMPILERS), ("collector", COLLECTOR)):
            if name.startswith(beginnings):
                found[part] += cpu_s
                found["jvm"] -= cpu_s
    return found


def _threads(pid: int) -> dict[tuple[int, str], tuple[str, float]]:
    """Returns the name and the processor time of each thread."""
    try:
        paths = list((_PROC / str(pid) / "task").iterdir())
    except OSError:  # it has ended
        return {}
    found = ((path.name, _read(path)) for path in paths)
    return {(pid, tid): (thread.name, thread.cpu_s) for tid, thread in found if thread}


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
    name, fields = text[text.index("(") + 1 : text.rindex(")")], text[text.rindex(")") + 2 :].split()
    parent, user, system, started, pages = (int(fields[place]) for place in (1, 11, 12, 19, 21))
    return _Process(int(path.name), name, parent, started, (user + system) / _TICKS, pages * _PAGE)
