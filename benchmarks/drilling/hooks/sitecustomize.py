"""Code that drills load into every Python process of a run, by PYTHONPATH: a watched disk, a clock that
jumps.

``ROVE_DRILL_DISK=SHADOW:ROOT``: after every fsync below ROOT, SHADOW holds what would survive a power cut.
``ROVE_DRILL_CLOCK=FILE``: once FILE exists, the wall clock is off by the seconds written in it.
"""

import json
import os
import stat
import threading
import time
from pathlib import Path
from typing import Any


def _watch_disk(shadow: Path, root: Path) -> None:
    real = os.fsync

    def fsync(file: Any) -> None:
        descriptor = file if isinstance(file, int) else file.fileno()
        real(descriptor)
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        if path.is_relative_to(root):
            _note(shadow, path, os.fstat(descriptor))

    os.fsync = fsync  # type: ignore[assignment]


def _note(shadow: Path, path: Path, facts: os.stat_result) -> None:
    if stat.S_ISDIR(facts.st_mode):
        known = {entry.name: _entry(entry) for entry in path.iterdir()}
        _write(shadow / "directories" / str(facts.st_ino), json.dumps(known).encode())
        return
    held = shadow / "held" / str(facts.st_ino)  # a second name, so that its number is not used again
    if not held.exists():
        held.hardlink_to(path)
    _write(shadow / "files" / str(facts.st_ino), path.read_bytes())


def _entry(entry: Path) -> tuple[str, str | int]:
    if entry.is_symlink():
        return "link", str(entry.readlink())
    return "directory" if entry.is_dir() else "file", entry.stat().st_ino


def _write(path: Path, data: bytes) -> None:
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}")
    unfinished.write_bytes(data)
    unfinished.replace(path)


def _step_clock(trigger: Path) -> None:
    real_ns, real_gettime_ns = time.time_ns, time.clock_gettime_ns
    step = 0
    next_look = 0

    def offset() -> int:
        nonlocal step, next_look
        now = time.monotonic_ns()
        if not step and now >= next_look:
            next_look = now + 5_000_000
            if trigger.exists():
                step = int(float(trigger.read_text()) * 1e9)
        return step

    def gettime_ns(clock: int) -> int:
        return real_gettime_ns(clock) + (offset() if clock == time.CLOCK_REALTIME else 0)

    time.time_ns = lambda: real_ns() + offset()
    time.time = lambda: time.time_ns() / 1e9
    time.clock_gettime_ns = gettime_ns
    time.clock_gettime = lambda clock: gettime_ns(clock) / 1e9


if "ROVE_DRILL_DISK" in os.environ:
    _watch_disk(*map(Path, os.environ["ROVE_DRILL_DISK"].split(":")))
if "ROVE_DRILL_CLOCK" in os.environ:
    _step_clock(Path(os.environ["ROVE_DRILL_CLOCK"]))
