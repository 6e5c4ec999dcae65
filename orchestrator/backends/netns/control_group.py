"""Puts a run's processes into a control group (v2), if this user may create one: one write ends them all.

It catches what the mark in the environment cannot: a process that cleared its environment and lost its
parent. Without a group, pidfds and the mark are used.
"""

import errno
import os
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from orchestrator.backends.netns.marks import Mark

_MOUNTS = Path("/proc/self/mountinfo")
_OWN = Path("/proc/self/cgroup")


@dataclass(frozen=True)
class ControlGroup:
    path: Path

    def kill(self) -> None:
        """Ends every process in the group at once."""
        with suppress(FileNotFoundError):
            (self.path / "cgroup.kill").write_text("1")

    def remove(self, timeout: float) -> bool:
        """Removes the group once its processes are gone. Returns False if some are not. May be repeated."""
        deadline = time.monotonic() + timeout
        while True:
            try:
                self.path.rmdir()
            except FileNotFoundError:
                return True
            except OSError as error:
                if error.errno != errno.EBUSY:
                    raise
                if time.monotonic() >= deadline:
                    return False
                time.sleep(0.002)
            else:
                return True


def create_around(mark: Mark, pid: int) -> ControlGroup | None:
    """Returns the run's group, below our own, with ``pid`` in it; None if this user or kernel has none."""
    root, own = _root(), _own_place()
    if root is None or own is None:
        return None
    group = ControlGroup(root / own / mark.group)
    try:
        group.path.mkdir(exist_ok=True)
    except OSError:
        return None
    try:
        if (group.path / "cgroup.kill").exists():  # since Linux 5.14
            (group.path / "cgroup.procs").write_text(str(pid))
            return group
    except OSError:
        pass
    group.remove(timeout=0.0)
    return None


def find(mark: Mark) -> list[ControlGroup]:
    """Returns the run's groups, whichever session created them."""
    root = _root()
    if root is None:
        return []
    places = (Path(place) for place, _, _ in os.walk(root))
    return [ControlGroup(place) for place in places if place.name == mark.group]


def _root() -> Path | None:
    for line in _MOUNTS.read_text().splitlines():
        place, _, source = line.partition(" - ")
        if source.startswith("cgroup2 "):
            return Path(place.split()[4])
    return None


def _own_place() -> str | None:
    for line in _OWN.read_text().splitlines():
        if line.startswith("0::"):
            return line.removeprefix("0::").lstrip("/")
    return None
