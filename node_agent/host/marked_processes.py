"""Finds processes that belong to a run, by a mark in their environment (in /proc)."""

import os
import signal
from dataclasses import dataclass
from pathlib import Path

MARK = "ROVE_RUN"
PLACE = "ROVE_RUN_DIRECTORY"
_PROC = Path("/proc")


@dataclass(frozen=True)
class Identity:
    """Identifies a process for good: its pid and its start time in clock ticks since boot."""

    pid: int
    started: int

    def is_alive(self) -> bool:
        return identify(self.pid) == self


def identify(pid: int) -> Identity | None:
    try:
        stat = (_PROC / str(pid) / "stat").read_text()
    except OSError:
        return None
    # The command name in parentheses may contain spaces and parentheses.
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else Identity(pid, int(fields[19]))


def send(process: Identity, number: signal.Signals) -> bool:
    """Sends a signal to exactly this process. Returns False if it is gone (its
    pid may be reused) or belongs to another user."""
    try:
        held = os.pidfd_open(process.pid)
    except (AttributeError, OSError) as error:
        if isinstance(error, ProcessLookupError):
            return False
        held = None  # older phones' kernels have no pidfd
    try:
        if not process.is_alive():
            return False
        if held is None:
            os.kill(process.pid, number)
        else:
            signal.pidfd_send_signal(held, number)
        return True
    except (ProcessLookupError, PermissionError):
        return False
    finally:
        if held is not None:
            os.close(held)


def this_process() -> Identity:
    own = identify(os.getpid())
    assert own is not None
    return own


def mark(run_id: str, directory: Path) -> dict[str, str]:
    """Returns environment variables that mark a process, and all it starts, as part of the run."""
    return {MARK: run_id, PLACE: str(directory.resolve())}


def marked_places() -> set[Path]:
    """Returns the directories of all runs that have a living process, in one pass over /proc."""
    own = os.getpid()
    pids = (int(entry.name) for entry in _PROC.iterdir() if entry.name.isdigit())
    variables = (variable for pid in pids if pid != own for variable in _environment(pid))
    prefix = f"{PLACE}=".encode()
    return {Path(os.fsdecode(v.removeprefix(prefix))) for v in variables if v.startswith(prefix)}


def marked(run_id: str, directory: Path) -> list[Identity]:
    """Returns living processes with the run's mark. A process with another
    directory belongs to a run of the same name."""
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
        return []  # gone, or another user's: not ours to end
