"""What reading any trace file needs: errors that name file and line, checked numbers, names for nodes."""

import gzip
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path as FilePath

from orchestrator.errors import BadInput
from orchestrator.mobility.trace import Area, Path, Position, Trace

BORDER_ROUNDING_M = 1e-6
"""How far outside the area a position may lie: rounding by the tool that wrote the file."""


class TraceError(BadInput):
    """A trace file cannot be used; ``line`` counts from 1 and is None where the whole file is meant."""

    def __init__(self, file: str, line: int | None, message: str) -> None:
        self.file, self.line, self.message = file, line, message
        super().__init__(f"{file}:{line}: {message}" if line is not None else f"{file}: {message}")


@dataclass(frozen=True)
class Place:
    """A line of a file, and what may stand in it."""

    file: str
    line: int | None = None

    def error(self, message: str) -> TraceError:
        return TraceError(self.file, self.line, message)

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
                        f"of {area[0]:g} m × {area[1]:g} m"
                    )
        return position


def read_text(file: FilePath) -> str:
    """The file's text, decompressed if its name ends in .gz."""
    try:
        data = file.read_bytes()
        return (gzip.decompress(data) if file.suffix == ".gz" else data).decode()
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise TraceError(str(file), None, f"cannot be read: {error}") from None


def write_text(file: FilePath, text: str) -> None:
    """The same text gives the same bytes, compressed or not."""
    data = text.encode()
    file.write_bytes(gzip.compress(data, mtime=0) if file.suffix == ".gz" else data)


def named(paths: Sequence[Path], nodes: Sequence[str], file: str) -> Trace:
    """The file's nodes, in order, under the topology's names; nodes beyond the topology's are left out."""
    if len(paths) < len(nodes):
        raise TraceError(file, None, f"moves {len(paths)} nodes, but the topology has {len(nodes)}")
    return Trace(dict(zip(nodes, paths, strict=False)))
