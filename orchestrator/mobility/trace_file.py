"""Shared by readers of trace files: errors that name file and line, checked numbers, names for nodes."""

import gzip
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path as FilePath

from orchestrator.errors import BadInput
from orchestrator.model.trace import Area, Path, Position, Trace
from orchestrator.spec.source_file import MOST_BYTES

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
        with gzip.open(file) if _is_compressed(file) else file.open("rb") as stream:
            data = stream.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise TraceError(str(file), None, f"larger than {MOST_BYTES / 1e6:g} MB, more than is read")
        return data.decode("utf-8-sig")  # spreadsheets write a byte-order mark at the start of files
    except UnicodeDecodeError as error:
        raise TraceError(str(file), None, f"cannot be read: byte {error.start} is not UTF-8") from None
    except (OSError, EOFError, zlib.error) as error:
        raise TraceError(str(file), None, f"cannot be read: {error}") from None


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
