"""What drills put into every Python process of a run, through PYTHONPATH: a disk that is watched, a clock that jumps.

``ROVE_DRILL_DISK=SHADOW:ROOT``: after every fsync below ROOT, SHADOW knows what would survive a power cut.
``ROVE_DRILL_CLOCK=FILE``: once FILE exists, the wall clock is off by the seconds written in it.
"""

import json
import os
import stat
import threading
import time


def _watch_disk(shadow: str, root: str) -> None:
    real = os.fsync

    def fsync(file: object) -> None:
        descriptor = file if isinstance(file, int) else file.fileno()  # type: ignore[attr-defined]
        real(descriptor)
        path = os.readlink(f"/proc/self/fd/{descriptor}")
        if path == root or path.startswith(f"{root}/"):
            _note(shadow, path, descriptor)

    os.fsync = fsync  # type: ignore[assignment]


def _note(shadow: str, path: str, descriptor: int) -> None:
    facts = os.fstat(descriptor)
    if stat.S_ISDIR(facts.st_mode):
        with os.scandir(path) as entries:
            known = {entry.name: _entry(entry) for entry in entries}
        _write(f"{shadow}/directories/{facts.st_ino}", json.dumps(known).encode())
        return
    held = f"{shadow}/held/{facts.st_ino}"  # a second name, so that its number is not used again
    if not os.path.lexists(held):
        os.link(path, held)
    with open(path, "rb") as file:
        _write(f"{shadow}/files/{facts.st_ino}", file.read())


def _entry(entry: "os.DirEntry[str]") -> list[object]:
    if entry.is_symlink():
        return ["link", os.readlink(entry.path)]
    return ["directory" if entry.is_dir() else "file", entry.inode()]


def _write(path: str, data: bytes) -> None:
    unfinished = f"{path}.{os.getpid()}.{threading.get_ident()}"
    with open(unfinished, "wb") as file:
        file.write(data)
    os.replace(unfinished, path)


def _step_clock(trigger: str) -> None:
    real_ns, real_gettime_ns = time.time_ns, time.clock_gettime_ns
    state = {"offset": 0, "next_look": 0}

    def offset() -> int:
        now = time.monotonic_ns()
        if not state["offset"] and now >= state["next_look"]:
            state["next_look"] = now + 5_000_000
            try:
                with open(trigger) as file:
                    state["offset"] = int(float(file.read()) * 1e9)
            except (OSError, ValueError):
                pass
        return state["offset"]

    def gettime_ns(clock: int) -> int:
        return real_gettime_ns(clock) + (offset() if clock == time.CLOCK_REALTIME else 0)

    time.time_ns = lambda: real_ns() + offset()
    time.time = lambda: time.time_ns() / 1e9
    time.clock_gettime_ns = gettime_ns
    time.clock_gettime = lambda clock: gettime_ns(clock) / 1e9


if "ROVE_DRILL_DISK" in os.environ:
    _watch_disk(*os.environ["ROVE_DRILL_DISK"].split(":"))
if "ROVE_DRILL_CLOCK" in os.environ:
    _step_clock(os.environ["ROVE_DRILL_CLOCK"])
