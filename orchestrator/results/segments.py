"""Finds the segment files of a run's nodes, and counts their lines that are too long for Spark."""

import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from node_agent.telemetry.records import LONGEST_LINE
from node_agent.telemetry.segment_files import lines_in, open_regular, segment_names


class Segment(NamedTuple):
    """``size`` is None if it is not a regular file."""

    node: str
    boot: int
    path: Path
    size: int | None

    def unread(self) -> int:
        """Counts lines that Spark skips because they are too long.
        Anything that is not a file counts as one.
        """
        if self.size is None:
            return 1
        if self.size <= LONGEST_LINE:
            return 0
        with open_regular(self.path) as file:
            if _has_short_lines(file):
                return 0
            file.seek(0)
            return sum(line is None for line in lines_in(file))


def segments_in(nodes: Path) -> Iterator[Segment]:
    if nodes.is_symlink() or not nodes.is_dir():
        return
    for place in sorted(nodes.iterdir()):
        if not place.name.isprintable():  # no node has such a name, and Spark could not express it
            continue
        directory = place / "segments"
        for name in segment_names(directory):
            path = directory / str(name)
            yield Segment(place.name, name.boot, path, size_of(path))


def size_of(path: Path) -> int | None:
    """Returns the size; None if it is not a regular file."""
    try:
        found = path.lstat()
    except OSError:
        return None
    return found.st_size if stat.S_ISREG(found.st_mode) else None


def _has_short_lines(file: BinaryIO) -> bool:
    """Checks quickly that no line is too long: such a line has no line end in some half of that length."""
    while chunk := file.read(LONGEST_LINE // 2):
        if b"\n" not in chunk:
            return False
    return True
