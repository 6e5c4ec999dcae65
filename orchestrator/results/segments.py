"""The segments of a run's nodes, as files, and which of their lines are too long for Spark."""

import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from node_agent.telemetry.records import LONGEST_LINE
from node_agent.telemetry.segment_files import lines_in, open_regular, segment_names


class Segment(NamedTuple):
    """``size``: None if it is no regular file."""

    node: str
    boot: int
    path: Path
    size: int | None

    def unread(self) -> int:
        """Lines that Spark passes over: they are too long. Of what is no file, one."""
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
        if not place.name.isprintable():  # no node is called so, and Spark could not name it
            continue
        directory = place / "segments"
        for name in segment_names(directory):
            path = directory / str(name)
            yield Segment(place.name, name.boot, path, size_of(path))


def size_of(path: Path) -> int | None:
    """None if it is no regular file."""
    try:
        found = path.lstat()
    except OSError:
        return None
    return found.st_size if stat.S_ISREG(found.st_mode) else None


def _has_short_lines(file: BinaryIO) -> bool:
    """A line that is too long has no end in some half of that length; few files need a closer look."""
    while chunk := file.read(LONGEST_LINE // 2):
        if b"\n" not in chunk:
            return False
    return True
