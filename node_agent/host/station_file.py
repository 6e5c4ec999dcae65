"""The station table of an emulated radio: a file for each node, written in place by the radio and read by the
node's routing daemon.

A reader never waits: a table that is just being written is noticed by its two counters, and the one before
counts.
"""

import os
from contextlib import suppress
from struct import Struct

from node_agent.model.link_layer import LinkReading, Readings

_HEAD = Struct("=4sIfI")  # magic, counter, sensitivity, number of neighbours
_ENTRY = Struct("=6s2xIIIIff")
_TAIL = Struct("=I")
_MAGIC = b"RvSt"
_MOST = 4096


def pack(counter: int, sensitivity_dbm: float, readings: Readings) -> bytes:
    counter &= 0xFFFF_FFFF
    parts = [_HEAD.pack(_MAGIC, counter, sensitivity_dbm, len(readings))]
    for hardware, (received, acknowledged, retries, failed, signal_dbm, age_s) in readings.items():
        signal = float("nan") if signal_dbm is None else signal_dbm
        counts = (each & 0xFFFF_FFFF for each in (received, acknowledged, retries, failed))
        parts.append(_ENTRY.pack(hardware, *counts, signal, age_s))
    parts.append(_TAIL.pack(counter))
    return b"".join(parts)


def unpack(data: bytes) -> tuple[float, dict[bytes, LinkReading]] | None:
    """Returns the sensitivity and the readings; None if the table is not whole."""
    if len(data) < _HEAD.size + _TAIL.size:
        return None
    magic, counter, sensitivity_dbm, count = _HEAD.unpack_from(data)
    end = _HEAD.size + count * _ENTRY.size
    if magic != _MAGIC or count > _MOST or len(data) < end + _TAIL.size:
        return None
    if _TAIL.unpack_from(data, end) != (counter,):
        return None
    return sensitivity_dbm, {
        hardware: LinkReading(
            received, acknowledged, retries, failed, None if signal != signal else signal, age_s
        )
        for hardware, received, acknowledged, retries, failed, signal, age_s in _ENTRY.iter_unpack(
            data[_HEAD.size : end]
        )
    }


class StationFile:
    """A ``LinkLayer``. The file may appear later."""

    def __init__(self, path: str) -> None:
        self.sensitivity_dbm: float | None = None
        self._path = path
        self._descriptor: int | None = None
        self._known: Readings = {}

    def read(self) -> Readings:
        with suppress(OSError):
            if self._descriptor is None:
                self._descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
            size = _HEAD.size + _MOST * _ENTRY.size + _TAIL.size
            if found := unpack(os.pread(self._descriptor, size, 0)):
                self.sensitivity_dbm, self._known = found
        return self._known

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
