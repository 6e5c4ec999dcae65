"""Measures how much memory agents with models take, forked from one process that loaded them."""

import gc
import os
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn


def pss_mb(processes: int, work: Callable[[], object]) -> float:
    """Returns the proportional set size of this process and its children together, after all have done the
    work.
    """
    gc.collect()
    gc.freeze()  # or the children's collector would touch, and so copy, all Python objects
    children: list[tuple[int, int]] = []
    held, release = os.pipe()
    try:
        for _ in range(processes):
            ready, done = os.pipe()
            pid = os.fork()
            if pid == 0:
                os.close(release)
                _child(work, done, held)
            os.close(done)
            children.append((pid, ready))
        for pid, ready in children:
            if os.read(ready, 1) != b"1":
                raise RuntimeError(f"process {pid} failed at its work")
        return sum(_pss_kb(pid) for pid in (os.getpid(), *(pid for pid, _ in children))) / 1024
    finally:
        os.close(release)
        os.close(held)
        for pid, ready in children:
            os.close(ready)
            os.waitpid(pid, 0)
        gc.unfreeze()


def _child(work: Callable[[], object], done: int, held: int) -> NoReturn:
    """Works, reports it, and stays until the parent closes its end. Does not return."""
    try:
        work()
        os.write(done, b"1")
        os.read(held, 1)
    finally:
        os._exit(0)


def _pss_kb(pid: int) -> int:
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return next(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:"))
