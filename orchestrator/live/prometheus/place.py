"""The directory of Prometheus beside the runs: the user's own and private, and nothing in it is a link.

    with Place(runs_dir / ".prometheus") as place:
        place.write("prometheus.yml", text)

It lies in a directory of runs, which may be somebody else's: a link there could lead to any file of the user.
"""

import errno
import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NoReturn

from orchestrator.errors import RoveError

PRIVATE = 0o700
_SECRET = 0o600
_MOST_READ = 64 * 1024
_NO_LINK = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


class PrometheusFailed(RoveError):
    """Prometheus was not started; the message says why, with its last words if it had any."""


class Place:
    """Made if it is not there. Holds descriptors from ``open`` to ``close``: what is exchanged for the
    directory meanwhile is not used.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor = -1
        self._lock = -1
        self.was_private = True
        """Whether nobody else could write there before it was opened."""

    def open(self) -> None:
        """Raises PrometheusFailed, OSError."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._descriptor, self.was_private = _own_directory(str(self.path), None, self.path)

    def __enter__(self) -> "Place":
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """May be repeated."""
        self.unlock()
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1

    @property
    def current(self) -> str:
        """The working directory for a process that is started now, and is to use names without a path."""
        return f"/proc/{os.getpid()}/fd/{self._descriptor}"

    def lock(self) -> int:
        """Returns what holds the lock until all who have it close it. Raises PrometheusFailed."""
        flags = os.O_RDWR | os.O_CREAT | _NO_LINK
        with _explained(self.path / "lock"):
            self._lock = os.open("lock", flags, _SECRET, dir_fd=self._descriptor)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise PrometheusFailed(
                f"another Prometheus of rove serve uses {self.path}: end that first"
            ) from error
        return self._lock

    def unlock(self) -> None:
        """The lock stays with processes that have inherited it."""
        if self._lock >= 0:
            os.close(self._lock)
        self._lock = -1

    def folder(self, name: str) -> None:
        """Makes the directory ``name``, or checks that all in it are plain files and directories."""
        path = self.path / name
        descriptor, _ = _own_directory(name, self._descriptor, path)
        os.close(descriptor)
        for place, folders, files, at in os.fwalk(name, dir_fd=self._descriptor, onerror=_raise):
            for each in (*folders, *files):
                mode = os.stat(each, dir_fd=at, follow_symlinks=False).st_mode
                if not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
                    _refuse(self.path / place / each, "is neither a file nor a directory")

    def create(self, name: str) -> int:
        """Returns a descriptor of a new, empty file, for writing; what had the name is gone."""
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self._descriptor)
        return os.open(
            name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINK, _SECRET, dir_fd=self._descriptor
        )

    def write(self, name: str, data: bytes) -> None:
        """Replaces a file as a whole. Only the user can read it."""
        draft = f".{name}.tmp"
        with os.fdopen(self.create(draft), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, name, src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor)

    def remove(self, name: str) -> None:
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self._descriptor)

    def end_of(self, name: str) -> bytes | None:
        """Returns the last 64 kB of a file; None if there is none that can be read."""
        try:
            descriptor = os.open(name, os.O_RDONLY | _NO_LINK, dir_fd=self._descriptor)
        except OSError:
            return None
        with os.fdopen(descriptor, "rb") as file:
            state = os.fstat(descriptor)
            if not stat.S_ISREG(state.st_mode):
                return None
            file.seek(max(0, state.st_size - _MOST_READ))
            return file.read(_MOST_READ)


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turns the error of a link, or of something else that is no file, into PrometheusFailed."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.EISDIR):
            _refuse(path, "is a link, or not what belongs there")
        raise


def _own_directory(name: str, within: int | None, path: Path) -> tuple[int, bool]:
    """Returns a descriptor, and whether the directory was private already."""
    made = False
    with suppress(FileExistsError):
        os.mkdir(name, PRIVATE, dir_fd=within)
        made = True
    with _explained(path):
        descriptor = os.open(name, os.O_RDONLY | os.O_DIRECTORY | _NO_LINK, dir_fd=within)
    try:
        state = os.fstat(descriptor)
        if state.st_uid != os.geteuid():
            _refuse(path, "belongs to another user")
        was_private = made or stat.S_IMODE(state.st_mode) == PRIVATE
        os.fchmod(descriptor, PRIVATE)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor, was_private


def _refuse(path: Path, why: str) -> NoReturn:
    raise PrometheusFailed(f"{path} {why}: Prometheus needs a directory of your own there; remove it")


def _raise(error: OSError) -> None:
    raise error
