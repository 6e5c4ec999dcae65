"""The place of a run on a node: its file names, which process holds it, and how its run ended."""

import errno
import fcntl
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from node_agent.model.checked import Checked, Moment, Refused
from node_agent.supervisor.bridge import SOCKET

RECORD = "record"
LOG = "supervisor.log"
ENDED = "ended.json"
_OCCUPIED_BY = "supervisor.pid"
_LOCK_TIMEOUT_S = 0.5
_TO_BE_ENDED = f"{ENDED}.new"
_ROOM = 4096
_MOST_ENDED_BYTES = 64 * 1024
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


class Occupied(Exception):
    """Another supervisor runs here."""


class NotPrivate(OSError):
    """Other users of the machine can read the place, or it belongs to another user."""


class Ended(Struct, frozen=True):
    """``in_order``: nothing had failed and nothing had to be killed; otherwise ``trouble`` says what."""

    reason: str
    t_ns: Moment
    in_order: bool
    trouble: tuple[str, ...] = ()


_ENDED: Checked[Ended] = Checked(Ended, _MOST_ENDED_BYTES)


def require_private(place: Path) -> None:
    """Raises NotPrivate if others have access: a supervisor obeys whoever can write here, and the run's key
    is here.
    """
    status = place.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
        raise NotPrivate(errno.EPERM, "it is not a directory of this user", str(place))
    if status.st_mode & _OTHERS:
        raise NotPrivate(errno.EPERM, "other users have rights to it: chmod 700", str(place))


@contextmanager
def occupied(place: Path) -> Iterator[None]:
    """Holds the place's lock while the supervisor lives: the kernel frees a lock however its holder ends."""
    descriptor = os.open(place / _OCCUPIED_BY, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        if not _locked(descriptor, fcntl.LOCK_EX, _LOCK_TIMEOUT_S):  # a check holds it briefly
            raise Occupied(f"a supervisor runs here already, process {_written(descriptor) or '?'}")
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(descriptor)


def is_occupied(place: Path) -> bool:
    return occupant(place) is not None


def occupant(place: Path) -> int | None:
    """Returns the supervisor's process: 0 if it has not written its number yet,
    None if there is none, whatever the file says.

    An earlier supervisor may have written the file: it counts only for a process that has the file open.
    """
    try:
        descriptor = os.open(place / _OCCUPIED_BY, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        if _locked(descriptor, fcntl.LOCK_SH, 0):
            return None
        pid = _written(descriptor)
        return pid if pid and _has_open(pid, descriptor) else 0
    finally:
        os.close(descriptor)


def wait_until_free(place: Path, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while is_occupied(place):
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.02)
    return True


def remove_socket(place: Path) -> None:
    """Removes the supervisor's socket, in use or left over."""
    (place / SOCKET).unlink(missing_ok=True)


def read_ended(place: Path) -> Ended | None:
    try:
        with (place / ENDED).open("rb") as file:
            return _ENDED.decode(file.read(_MOST_ENDED_BYTES + 1))
    except (OSError, Refused):
        return None


def make_room_for_end(place: Path) -> None:
    """Reserves room for the exit report, because the run may fill the disk. Raises OSError."""
    (place / ENDED).unlink(missing_ok=True)
    (place / _TO_BE_ENDED).write_bytes(b" " * _ROOM)


def write_ended(place: Path, ended: Ended) -> None:
    """Writes durably: the node may be switched off next. Raises OSError."""
    unfinished = place / _TO_BE_ENDED
    with unfinished.open("r+b" if unfinished.exists() else "wb") as file:
        file.write(msgspec.json.encode(ended))
        file.truncate()
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(place / ENDED)
    directory = os.open(place, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _locked(descriptor: int, kind: int, timeout: float) -> bool:
    deadline = time.monotonic() + timeout
    while True:
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.02)
        else:
            return True


def _has_open(pid: int, descriptor: int) -> bool:
    own = os.fstat(descriptor)
    with suppress(OSError):  # it is gone, or another user's
        for link in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):
                if os.path.samestat(link.stat(), own):
                    return True
    return False


def _written(descriptor: int) -> int:
    text = os.pread(descriptor, 20, 0)
    return int(text) if text.isdigit() else 0
