"""Reads what is added to a file, whole lines only, in bounded pieces.

The file may not be there yet, may end in half a line, may be a link or a pipe, or may be replaced by another
with the same beginning: a node's mirrored segment by the collected one.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from node_agent.telemetry.records import LONGEST_LINE
from orchestrator.live.inside import open_inside

PIECE = 64 * 1024
MOST_LINES = 4096
"""In a piece."""
MOST_SKIPPED = 16 * 1024 * 1024
"""Bytes of lines that are too long. Beyond it, a file is read no further: it may be all holes."""
MOST_KEPT_OPEN = 32
"""Files of one run; others are opened anew each time they are read."""


class Allowance:
    """What all files of a run share: how many more of them may be kept open."""

    def __init__(self, most: int = MOST_KEPT_OPEN) -> None:
        self.left = most


class Tail:
    """``places``: where the file can be, the best first. It is read on at the same offset in another.

    ``root``: the folder below which no link is followed; the file's own if it is left out.
    """

    def __init__(
        self,
        places: Sequence[Path],
        longest: int = LONGEST_LINE,
        root: Path | None = None,
        allowance: Allowance | None = None,
    ) -> None:
        self._places = places
        self._longest = longest
        self._root = root
        self._allowance = allowance if allowance is not None else Allowance()
        self._fd: int | None = None
        self._place = -1
        self._file: tuple[int, int] | None = None
        """Device and number of the file that is read."""
        self._skipping = False
        self._searched = 0
        """Bytes after ``offset`` that have no line end."""
        self.offset = 0
        self.too_long = 0
        """Lines that were left out because they are longer than ``longest``."""
        self.skipped = 0
        """How many bytes those had."""
        self.cost = 0
        """How many bytes were read so far; more than lines have, if some were read twice."""

    def look(self) -> bool:
        """Finds the file, or another of ``places`` that is better and no shorter; says whether there is one.

        Costs a few system calls: call it now and then.
        """
        for place in range(len(self._places)):
            fd = self._opened(place)
            if fd is None:
                continue
            status = os.fstat(fd)
            if self._file == (status.st_dev, status.st_ino) and place == self._place:
                os.close(fd)
                return True
            if status.st_size < self.offset:  # not complete yet
                os.close(fd)
                continue
            self.close()
            self._file, self._place = (status.st_dev, status.st_ino), place
            self._keep(fd)
            return True
        return self._fd is not None  # what is open and has been removed can still be read

    def read(self, most: int = PIECE) -> tuple[list[bytes], bool]:
        """Returns the next whole lines, of about ``most`` bytes together, and whether the end was reached."""
        if self._file is None or self.skipped > MOST_SKIPPED:
            return [], True
        fd = self._fd if self._fd is not None else self._opened_again()
        if fd is None:
            return [], True
        try:
            return self._read(fd, most)
        except OSError:
            return [], True
        finally:
            if fd != self._fd:
                os.close(fd)

    def close(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None
            self._allowance.left += 1
        self._file = None

    def _read(self, fd: int, most: int) -> tuple[list[bytes], bool]:
        data = self._pread(fd, most, self.offset + self._searched)
        at_end = len(data) < most
        end = data.rfind(b"\n") + 1
        if end and self._searched:
            data = self._pread(fd, self._searched + end, self.offset)
            end = data.rfind(b"\n") + 1
            self._searched = 0
        if not end:
            self._searched += len(data)
            if self._skipping or self._searched > self._longest:
                self._skip(self._searched)
                self.offset += self._searched
                self._searched = 0
            return [], at_end
        lines = data[:end].split(b"\n", MOST_LINES)
        rest = lines.pop()  # nothing, or what is more than MOST_LINES
        self.offset += end - len(rest)
        return self._short(lines), at_end and not rest

    def _short(self, lines: list[bytes]) -> list[bytes]:
        """Leaves out the lines that are too long."""
        if not self._skipping and len(max(lines, key=len)) <= self._longest:
            return lines
        found: list[bytes] = []
        for line in lines:
            if self._skipping or len(line) > self._longest:
                self._skip(len(line) + 1)
                self._skipping = False
                if self.skipped > MOST_SKIPPED:
                    break
            else:
                found.append(line)
        return found

    def _skip(self, size: int) -> None:
        self.too_long += not self._skipping
        self._skipping = True
        self.skipped += size

    def _pread(self, fd: int, most: int, offset: int) -> bytes:
        data = os.pread(fd, most, offset)
        self.cost += len(data)
        return data

    def _keep(self, fd: int) -> None:
        if self._allowance.left > 0:
            self._allowance.left -= 1
            self._fd = fd
        else:
            os.close(fd)

    def _opened(self, place: int) -> int | None:
        path = self._places[place]
        return open_inside(self._root if self._root is not None else path.parent, path)

    def _opened_again(self) -> int | None:
        """Returns a descriptor of the same file as before."""
        fd = self._opened(self._place)
        if fd is None:
            return None
        status = os.fstat(fd)
        if self._file == (status.st_dev, status.st_ino):
            return fd
        os.close(fd)  # replaced: the next look decides
        return None
