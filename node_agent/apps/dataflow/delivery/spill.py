"""Stores payloads that memory has no room for: one file a node, whose space is reused."""

import os
from bisect import bisect_left, insort
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Protocol

import msgspec

Batch = list[tuple[bytes, ...]]
"""The payloads of neighbouring items."""


class SpillFull(Exception):
    """The spill has reached its limit, or its disk is full."""


class Spill(Protocol):
    def store(self, batch: Batch) -> int:
        """Returns a handle for ``load``. Raises SpillFull, and then has stored nothing."""
        ...

    def load(self, handle: int) -> Batch: ...

    def free(self, handle: int) -> None: ...


class SpillFile:
    """A file without a name in its directory, so that it disappears with its process.

    It is created with the first batch and never longer than ``most`` bytes. Freed space is filled first-fit,
    and cut off at the end of the file. ``refused`` counts batches that did not fit; ``refusal`` is the last
    reason. The owner closes it.
    """

    def __init__(self, directory: Path, most: int) -> None:
        self.refused = 0
        self.refusal: str | None = None
        self._directory = directory
        self._most = most
        self._file: IO[bytes] | None = None
        self._used: dict[int, int] = {}
        self._free: list[tuple[int, int]] = []
        self._end = 0
        self._encode = msgspec.msgpack.Encoder().encode
        self._decode = msgspec.msgpack.Decoder(Batch).decode

    @property
    def size(self) -> int:
        """The length of the file in bytes."""
        return self._end

    def store(self, batch: Batch) -> int:
        data = self._encode(batch)
        at = self._place(len(data))
        if at + len(data) > self._most:
            self._refuse(at, len(data), f"it may have {self._most} bytes")
        self._used[at] = len(data)
        try:
            self._write(at, data)
        except OSError as error:
            del self._used[at]
            self._refuse(at, len(data), error.strerror or str(error))
        return at

    def load(self, handle: int) -> Batch:
        return self._decode(os.pread(self._descriptor(), self._used[handle], handle))

    def free(self, handle: int) -> None:
        self._give_back(handle, self._used.pop(handle))

    def close(self) -> None:
        """May be repeated."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _descriptor(self) -> int:
        if self._file is None:
            self._file = TemporaryFile(dir=self._directory, buffering=0)  # noqa: SIM115 - the owner closes it
        return self._file.fileno()

    def _write(self, at: int, data: bytes) -> None:
        descriptor, written = self._descriptor(), 0
        while written < len(data):
            written += os.pwrite(descriptor, data[written:], at + written)

    def _refuse(self, at: int, size: int, why: str) -> None:
        self._give_back(at, size)
        self.refused += 1
        self.refusal = why
        raise SpillFull(why)

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

    def _give_back(self, at: int, size: int) -> None:
        insort(self._free, (at, size))
        index = bisect_left(self._free, (at, size))
        for left in (index, index - 1):
            if 0 <= left < len(self._free) - 1 and sum(self._free[left]) == self._free[left + 1][0]:
                begin, room = self._free[left]
                self._free[left : left + 2] = [(begin, room + self._free[left + 1][1])]
        if sum(self._free[-1]) == self._end:
            self._end = self._free.pop()[0]
            if self._file is not None:
                self._file.truncate(self._end)
