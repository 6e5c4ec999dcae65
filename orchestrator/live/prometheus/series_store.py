"""Keeps lines of many series apart, each in the order in which they came, in bounded memory."""

from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

MOST_BYTES = 64 * 1024 * 1024


class Series(NamedTuple):
    """``family`` and ``labels`` together name one series; lines of a family are read together."""

    family: str
    labels: tuple[tuple[str, str], ...]


class SeriesStore:
    """Lines beyond ``most_bytes`` wait in ``spill``, an empty temporary file that the caller closes."""

    def __init__(self, spill: BinaryIO, most_bytes: int = MOST_BYTES) -> None:
        self._spill = spill
        self._most_bytes = most_bytes
        self._buffers: dict[Series, bytearray] = {}
        self._spilled: dict[Series, list[tuple[int, int]]] = {}
        self._held = 0
        self._end = 0

    def add(self, series: Series, lines: bytes) -> None:
        buffer = self._buffers.get(series)
        if buffer is None:
            buffer = self._buffers[series] = bytearray()
        buffer += lines
        self._held += len(lines)
        if self._held > self._most_bytes:
            self._write_out()

    def families(self) -> frozenset[str]:
        return frozenset(series.family for series in {*self._buffers, *self._spilled})

    def lines_of(self, family: str) -> Iterator[bytes]:
        """Yields the lines of all series of a family, series by series."""
        known = dict.fromkeys((*self._spilled, *self._buffers))
        for series in known:
            if series.family != family:
                continue
            for begin, length in self._spilled.get(series, ()):
                self._spill.seek(begin)
                yield self._spill.read(length)
            yield bytes(self._buffers.get(series, b""))

    def _write_out(self) -> None:
        self._spill.seek(self._end)
        for series, buffer in self._buffers.items():
            if buffer:
                self._spill.write(buffer)
                self._spilled.setdefault(series, []).append((self._end, len(buffer)))
                self._end += len(buffer)
                buffer.clear()
        self._held = 0
