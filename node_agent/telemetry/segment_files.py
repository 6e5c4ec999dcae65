"""Lists and reads the files of a segment directory: only regular files, in bounded memory.

A foreign directory may contain anything: links, pipes, odd names, endless lines.
"""

import errno
import os
import re
import stat
from collections.abc import Iterable, Iterator
from io import BufferedReader, FileIO
from pathlib import Path

import msgspec

from node_agent.telemetry.records import LONGEST_LINE

_SEGMENT_NAME = re.compile(r"b([0-9]{4,6})-s([0-9]{6,9})\.jsonl")
_CHUNK = 256 * 1024


class SegmentName(msgspec.Struct, frozen=True, order=True):
    boot: int
    index: int

    def __str__(self) -> str:
        return f"b{self.boot:04d}-s{self.index:06d}.jsonl"


class NotAFile(OSError):
    """Something with a segment's name is a link, a directory, a pipe or a device."""


def segment_names(directory: Path) -> list[SegmentName]:
    """Returns the segments of a directory in the order in which they were written; none if it does not exist.

    Ignores names that no log would write. Neither the directory nor its parent may be a link.
    """
    if directory.is_symlink() or directory.parent.is_symlink() or not directory.is_dir():
        return []
    return segments_among(path.name for path in directory.iterdir())


def segments_among(listed: Iterable[str]) -> list[SegmentName]:
    """Returns those names of files that a log would write, in the order in which it does."""
    matches = (_SEGMENT_NAME.fullmatch(name) for name in listed)
    names = ((m[0], SegmentName(int(m[1]), int(m[2]))) for m in matches if m)
    return sorted(name for text, name in names if name.boot > 0 and str(name) == text)


def sync_directory(directory: Path) -> None:
    """Makes renames and new names in ``directory`` survive a power cut."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def open_regular(path: Path) -> BufferedReader:
    """Opens a file for reading. Never waits for a pipe, never follows a link. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise NotAFile(errno.EINVAL, "not a regular file", str(path))
    return BufferedReader(FileIO(descriptor), _CHUNK)


def lines_in(file: BufferedReader, longest: int = LONGEST_LINE) -> Iterator[bytes | None]:
    """Yields each line, with its line end if it has one; None for a line longer than ``longest``."""
    while line := file.readline(longest + 1):
        if len(line) <= longest:
            yield line
            continue
        while line and not line.endswith(b"\n"):
            line = file.readline(_CHUNK)
        yield None
