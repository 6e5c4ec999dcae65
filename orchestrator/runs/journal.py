"""The journal of a run: records each action that leaves something behind before it is done.

The lock on the journal file shows that the run is alive. The kernel drops it with its process, however that
dies; descriptors are closed on exec, so children do not keep it.
"""

import errno
import fcntl
import os
import time
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

from msgspec import Struct, ValidationError, convert

from node_agent.model.checked import Count
from node_agent.telemetry.segment_files import open_regular
from orchestrator.runs.files import (
    append_line,
    not_regular,
    open_to_append,
    read_lines,
    readable,
    sync_directory,
)
from orchestrator.runs.processes import Identity, this_process

CLOSED = "closed"
TORN_DOWN = "torn_down"
LOCK_S = 10.0
"""How long a new journal waits for its lock: who looks whether the run is alive holds it for a moment."""
_MOMENT_S = 0.002
_PROC = Path("/proc")
Entry = dict[str, Any]


class Journal:
    """Append-only JSON lines, each synced. Holds the lock from the first line to ``close``."""

    def __init__(self, file: BinaryIO, next_id: int) -> None:
        self._file = file
        self._next_id = next_id

    @classmethod
    def create(cls, path: Path) -> Self:
        """Creates a journal that gets its name only when it is locked, so
        that nobody takes it for a dead run's."""
        hidden = unlocked_path(path)
        file = hidden.open("xb", buffering=0)
        try:
            _lock(file, LOCK_S)
        except BaseException:
            file.close()
            hidden.unlink(missing_ok=True)
            raise
        journal = cls(file, 1)
        owner = this_process()
        journal._append("opened", pid=owner.pid, started=owner.started)
        hidden.rename(path)
        sync_directory(path.parent)
        return journal

    @classmethod
    def take_over(cls, path: Path, timeout: float) -> Self | None:
        """Takes over the journal of a run whose orchestrator is gone; None
        if it is still locked after ``timeout``."""
        deadline = time.monotonic() + timeout
        while (file := _lock_if_free(path)) is None:
            if time.monotonic() >= deadline:
                return None
            time.sleep(0.05)
        data = readable(path)
        if data and not data.endswith(b"\n"):
            file.write(b"\n")  # end the torn line, so that ours is separate
        return cls(file, 1 + max((entry.get("id", 0) for entry in read(path)), default=0))

    @classmethod
    def reopen(cls, path: Path, timeout: float) -> Self | None:
        """Does the same for a run that goes on: this process is its orchestrator now."""
        journal = cls.take_over(path, timeout)
        if journal is not None:
            owner = this_process()
            journal._append("opened", pid=owner.pid, started=owner.started)
        return journal

    def intend(self, kind: str, **facts: Any) -> int:
        """Records an action before it is done. Pass the returned number to ``done`` afterwards."""
        number = self._next_id
        self._next_id += 1
        self._append("intent", id=number, kind=kind, **facts)
        return number

    def done(self, number: int, **facts: Any) -> None:
        self._append("done", id=number, **facts)

    def is_at(self, path: Path) -> bool:
        """Is it still the file of this name? Somebody may have removed or replaced the run's directory."""
        try:
            return os.path.samestat(os.fstat(self._file.fileno()), path.stat())
        except FileNotFoundError:
            return False

    def close(self, how: str = CLOSED, **facts: Any) -> None:
        if not self._file.closed:
            with self._file:
                self._append(how, **facts)

    def abandon(self) -> None:
        """Closes without an entry, like a killed process: the run counts as dead."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
        else:
            self.abandon()

    def _append(self, entry: str, **facts: Any) -> None:
        line = {"t": datetime.now(UTC).isoformat(timespec="milliseconds"), "entry": entry, **facts}
        append_line(self._file, line)
        os.fsync(self._file.fileno())


def unlocked_path(path: Path) -> Path:
    """Returns the journal's path until it is locked and has its first entry."""
    return path.with_name(f".{path.name}.tmp")


class _Shape(Struct, frozen=True):
    """The fields of every entry, and the types of common ones."""

    t: datetime
    entry: str
    id: Count = 0
    kind: str = ""
    pid: Count = 0
    started: Count = 0
    host: str = ""
    token: str = ""


def read(path: Path) -> list[Entry]:
    """Returns the entries in order; skips lines that no journal of ours contains, or that a crash tore."""
    return [entry for entry in read_lines(path) if _is_entry(entry)]


def _is_entry(entry: Entry) -> bool:
    try:
        shape = convert(entry, _Shape)
    except ValidationError:
        return False
    return shape.t.tzinfo is not None and (shape.entry != "opened" or (shape.pid > 0 and "started" in entry))


def is_locked(path: Path) -> bool:
    """Does a process (the run's own, or a teardown) hold this journal?"""
    for place in (unlocked_path(path), path):
        try:
            with open_regular(place) as file:
                return not try_lock(file, shared=True)
        except FileNotFoundError:
            continue
        except OSError as error:
            if not_regular(error):
                continue
            raise
    return False


def owner(entries: list[Entry]) -> Identity | None:
    """Returns the orchestrator that opened the journal last."""
    for entry in reversed(entries):
        if entry.get("entry") == "opened":
            return Identity(entry["pid"], entry["started"])
    return None


def holder(path: Path) -> Identity | None:
    """Returns the orchestrator that opened the journal if it still holds it.

    A journal may be somebody else's, and name any process: the kernel says who holds the lock.
    """
    process = owner(read(path))
    if process is None or not _holds(process, path) or not process.is_alive():
        return None
    return process


def _holds(process: Identity, path: Path) -> bool:
    """Has the process opened and locked this very file? False if this user may not look."""
    about = _PROC / str(process.pid)
    try:
        wanted = path.lstat()
        descriptors = [entry.name for entry in (about / "fd").iterdir()]
    except OSError:
        return False
    return any(_locks(about, name, wanted) for name in descriptors)


def _locks(about: Path, descriptor: str, wanted: os.stat_result) -> bool:
    try:
        if not os.path.samestat((about / "fd" / descriptor).stat(), wanted):
            return False
        facts = (about / "fdinfo" / descriptor).read_text()
    except OSError:
        return False  # closed meanwhile
    words = [line.split() for line in facts.splitlines() if line.startswith("lock:")]
    return any(line[2:5] == ["FLOCK", "ADVISORY", "WRITE"] for line in words)


def is_closed(entries: list[Entry]) -> bool:
    return bool(entries) and entries[-1].get("entry") in (CLOSED, TORN_DOWN)


def _lock_if_free(path: Path) -> BinaryIO | None:
    if unlocked_path(path).exists() and is_locked(path):
        return None
    file = open_to_append(path)
    if try_lock(file):
        return file
    file.close()
    return None


def _lock(file: BinaryIO, timeout: float) -> None:
    """Raises BlockingIOError if somebody still has the lock after ``timeout``."""
    deadline = time.monotonic() + timeout
    while not try_lock(file):
        if time.monotonic() >= deadline:
            raise BlockingIOError(errno.EAGAIN, "another process holds the journal", file.name)
        time.sleep(_MOMENT_S)


def try_lock(file: BinaryIO, shared: bool = False) -> bool:
    try:
        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
