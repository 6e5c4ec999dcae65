"""Processes that belong to a run: marked in their environment, found in /proc, ended by pidfd.

A pid may be reused between a look and a signal; a pidfd may not. So the mark is read again once the pidfd
is held, and only then is anything sent.
"""

import os
import select
import signal
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

MARK = "ROVE_RUN"
PLACE = "ROVE_RUN_DIRECTORY"
_PROC = Path("/proc")


@dataclass(frozen=True)
class Identity:
    """A process for ever: its pid and, in clock ticks since boot, when it started."""

    pid: int
    started: int

    def is_alive(self) -> bool:
        return identify(self.pid) == self


def identify(pid: int) -> Identity | None:
    try:
        stat = (_PROC / str(pid) / "stat").read_text()
    except OSError:
        return None
    # The command name in parentheses may itself hold spaces and parentheses.
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else Identity(pid, int(fields[19]))


def this_process() -> Identity:
    own = identify(os.getpid())
    assert own is not None
    return own


def mark(run_id: str, directory: Path) -> dict[str, str]:
    """The environment that makes a process, and all it starts, part of the run."""
    return {MARK: run_id, PLACE: str(directory.resolve())}


def marked_places() -> set[Path]:
    """The directories of all runs that a living process is marked with, in one look at /proc."""
    own = os.getpid()
    pids = (int(entry.name) for entry in _PROC.iterdir() if entry.name.isdigit())
    variables = (variable for pid in pids if pid != own for variable in _environment(pid))
    prefix = f"{PLACE}=".encode()
    return {Path(os.fsdecode(v.removeprefix(prefix))) for v in variables if v.startswith(prefix)}


def marked(run_id: str, directory: Path) -> list[Identity]:
    """Living processes with the run's mark. One that names another directory belongs to a namesake."""
    found = (identify(int(entry.name)) for entry in _PROC.iterdir() if entry.name.isdigit())
    own = os.getpid()
    return sorted(
        (
            process
            for process in found
            if process and process.pid != own and _carries(process, run_id, directory)
        ),
        key=lambda process: process.pid,
    )


def _carries(process: Identity, run_id: str, directory: Path) -> bool:
    variables = _environment(process.pid)
    if f"{MARK}={run_id}".encode() not in variables:
        return False
    places = [variable for variable in variables if variable.startswith(PLACE.encode() + b"=")]
    return not places or places == [f"{PLACE}={directory.resolve()}".encode()]


def _environment(pid: int) -> list[bytes]:
    try:
        return (_PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return []  # gone, or another user's: either way not ours to end


def end(processes: Iterable[Identity], grace: float) -> list[Identity]:
    """SIGTERM, then SIGKILL for what is left after ``grace`` seconds; returns those that were ended."""
    held = {descriptor: process for process in processes if (descriptor := _hold(process)) is not None}
    try:
        for number in (signal.SIGTERM, signal.SIGKILL):
            for descriptor in _unfinished(held, 0):
                _send(descriptor, number)
            if not _unfinished(held, grace):
                break
        return [process for process in held.values() if not process.is_alive()]
    finally:
        for descriptor in held:
            os.close(descriptor)


def request_stop(process: Identity) -> bool:
    """Ask a process to stop in order, as Ctrl-C does. False if it is gone."""
    descriptor = _hold(process)
    if descriptor is None:
        return False
    try:
        _send(descriptor, signal.SIGINT)
        return True
    finally:
        os.close(descriptor)


def _hold(process: Identity) -> int | None:
    try:
        descriptor = os.pidfd_open(process.pid)
    except OSError:
        return None
    if process.is_alive():
        return descriptor
    os.close(descriptor)
    return None


def _send(descriptor: int, number: signal.Signals) -> None:
    try:
        signal.pidfd_send_signal(descriptor, number)
    except ProcessLookupError:
        return


def _unfinished(descriptors: Iterable[int], seconds: float) -> list[int]:
    """Those that have not ended when ``seconds`` have passed; returns as soon as all have."""
    waiting = list(descriptors)
    deadline = time.monotonic() + seconds
    while waiting:
        left = max(0.0, deadline - time.monotonic())
        poll = select.poll()
        for descriptor in waiting:
            poll.register(descriptor, select.POLLIN)
        ended = {descriptor for descriptor, _ in poll.poll(left * 1000)}
        waiting = [descriptor for descriptor in waiting if descriptor not in ended]
        if left == 0.0:
            break
    return waiting
