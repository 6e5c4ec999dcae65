"""Shared by readers of trace files: errors that name file and line, checked numbers, names for nodes."""

import gzip
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path as FilePath

from orchestrator.errors import BadInput
from orchestrator.model.trace import Area, Path, Position, Trace
from orchestrator.spec.source_file import MOST_BYTES, Unreadable, read_bytes, text_of

BORDER_ROUNDING_M = 1e-6
"""How far outside the area a position may be, because the tool that wrote the file rounded it."""


class TraceError(BadInput):
    """A trace file cannot be used. ``line`` counts from 1; None: the whole file is meant."""

    def __init__(self, file: str, line: int | None, message: str, hint: str = "") -> None:
        self.file, self.line, self.message, self.hint = file, line, message, hint
        super().__init__(f"{file}:{line}: {message}" if line is not None else f"{file}: {message}")


@dataclass(frozen=True)
class Place:
    """A line of a file, with methods that read checked values from it."""

    file: str
    line: int | None = None

    def error(self, message: str, hint: str = "") -> TraceError:
        return TraceError(self.file, self.line, message, hint)

    def number(self, token: str, what: str) -> float:
        try:
            value = float(token)
        except ValueError:
            raise self.error(f"{what} is not a number: {token[:40]!r}") from None
        if not isfinite(value):
            raise self.error(f"{what} is not finite: {token[:40]!r}")
        return value

    def values(self, row: Sequence[str], columns: Sequence[str]) -> tuple[str, ...]:
        """Returns the values of a row that has one for each column."""
        if len(row) != len(columns):
            raise self.error(f"{len(row)} values, expected {len(columns)}: {','.join(columns)}")
        return tuple(row)

    def position(self, x: str, y: str, area: Area | None) -> Position:
        position = self.number(x, "x"), self.number(y, "y")
        if area is not None:
            for at, side in zip(position, area, strict=True):
                if not -BORDER_ROUNDING_M <= at <= side + BORDER_ROUNDING_M:
                    raise self.error(
                        f"position ({position[0]:g}, {position[1]:g}) lies outside the area "
                        f"of {area[0]:g} m × {area[1]:g} m",
                        "the area starts at (0, 0): make it larger, or shift the trace into it",
                    )
        return position


def read_text(file: FilePath) -> str:
    """Returns the file's text, decompressed if its name ends in .gz."""
    try:
        content = read_bytes(file, MOST_BYTES)
    except Unreadable as error:
        raise TraceError(str(file), None, f"cannot be read: {error.message}", error.hint) from None
    try:
        return text_of(file.name, content)
    except Unreadable as error:
        raise TraceError(str(file), None, error.message, error.hint) from None


def read_table(
    file: FilePath, headers: Sequence[tuple[str, ...]]
) -> tuple[tuple[str, ...], Iterator[tuple[Place, list[str]]]]:
    """Returns the columns of a file of values with commas, one of ``headers``, and the rows below. Empty
    lines and comments (``#``) are left out.
    """
    rows = _rows(file)
    expected = " or ".join(",".join(header) for header in headers)
    place, first = next(rows, (Place(str(file)), None))
    if first is None:
        raise place.error("the file is empty", f"it begins with {expected}")
    columns = tuple(first)
    if columns not in headers:
        raise place.error(f"the first line must be {expected}")
    return columns, rows


def _rows(file: FilePath) -> Iterator[tuple[Place, list[str]]]:
    for number, line in enumerate(read_text(file).splitlines(), 1):
        row = [entry.strip() for entry in line.split(",")]
        if row != [""] and not line.lstrip().startswith("#"):
            yield Place(str(file), number), row


def write_text(file: FilePath, text: str) -> None:
    """Writes the text, compressed if the name says so. The same text gives the same bytes."""
    data = text.encode()
    file.write_bytes(gzip.compress(data, mtime=0) if _is_compressed(file) else data)


def _is_compressed(file: FilePath) -> bool:
    return file.suffix.lower() == ".gz"


def named(paths: Sequence[Path], nodes: Sequence[str], file: str) -> Trace:
    """Gives the file's nodes, in order, the topology's names; leaves out nodes beyond these."""
    if len(paths) < len(nodes):
        text = f"moves {len(paths)} nodes, but the topology has {len(nodes)}"
        raise TraceError(file, None, text, f"use at most {len(paths)} nodes" if paths else "")
    return Trace(dict(zip(nodes, paths, strict=False)))
