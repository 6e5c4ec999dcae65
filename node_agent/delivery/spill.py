"""Where payloads go that memory has no room for: one file, whose space is used again."""

from bisect import insort
from pathlib import Path
from typing import BinaryIO, Protocol

import msgspec

Batch = list[tuple[bytes, ...]]
"""The payloads of neighbouring items."""


class Spill(Protocol):
    def store(self, batch: Batch) -> int:
        """A handle to get it back with."""
        ...

    def load(self, handle: int) -> Batch: ...

    def free(self, handle: int) -> None: ...


class SpillFile:
    """Freed stretches are filled first-fit, and cut off at the end of the file. The owner closes it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: BinaryIO = path.open("w+b")
        self._used: dict[int, int] = {}
        self._free: list[tuple[int, int]] = []
        self._end = 0
        self._encode = msgspec.msgpack.Encoder().encode
        self._decode = msgspec.msgpack.Decoder(Batch).decode

    def store(self, batch: Batch) -> int:
        data = self._encode(batch)
        at = self._place(len(data))
        self._used[at] = len(data)
        self._file.seek(at)
        self._file.write(data)
        return at

    def load(self, handle: int) -> Batch:
        self._file.seek(handle)
        return self._decode(self._file.read(self._used[handle]))

    def free(self, handle: int) -> None:
        insort(self._free, (handle, self._used.pop(handle)))
        at = next(i for i, (begin, _) in enumerate(self._free) if begin == handle)
        for left in (at, at - 1):
            if 0 <= left < len(self._free) - 1 and sum(self._free[left]) == self._free[left + 1][0]:
                begin, size = self._free[left]
                self._free[left : left + 2] = [(begin, size + self._free[left + 1][1])]
        if self._free[-1][0] + self._free[-1][1] == self._end:
            self._end = self._free.pop()[0]
            self._file.truncate(self._end)

    def close(self) -> None:
        """May be repeated."""
        self._file.close()
        self._path.unlink(missing_ok=True)

    def _place(self, size: int) -> int:
        for index, (at, room) in enumerate(self._free):
            if room >= size:
                if room == size:
                    del self._free[index]
                else:
                    self._free[index] = (at + size, room - size)
                return at
        at, self._end = self._end, self._end + size
        return at
