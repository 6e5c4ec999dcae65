"""Writes to disk how to undo each change before it is made, so that a killed process can be undone later.

The file lies beside the order.
"""

import os
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from node_agent.host.setup.observed import Observed
from node_agent.host.setup.order import SetupOrder
from node_agent.host.setup.steps import Command, SetupError

_BOOT = Path("/proc/sys/kernel/random/boot_id")


class UndoRecord(Struct, frozen=True):
    """Undo commands in the order in which to run them. ``give_back`` comes
    last: it returns the interface to its manager."""

    boot: str
    order: SetupOrder
    before: Observed | None = None
    undo: tuple[Command, ...] = ()
    give_back: tuple[Command, ...] = ()


class Journal:
    """``record`` is what is on disk. It is void after a restart of the machine."""

    def __init__(self, path: Path, order: SetupOrder) -> None:
        self._path = path
        self.record = UndoRecord(_boot(), order)

    def managed(self, undo: tuple[Command, ...]) -> None:
        self._write(replace(self.record, give_back=(*undo, *self.record.give_back)))

    def starts_from(self, before: Observed) -> None:
        self._write(replace(self.record, before=before))

    def intends(self, undo: tuple[Command, ...]) -> None:
        if undo:  # each write is slow on a memory card
            self._write(replace(self.record, undo=(*undo, *self.record.undo)))

    def _write(self, record: UndoRecord) -> None:
        try:
            _write_durably(self._path, msgspec.json.encode(record))
        except OSError as error:
            raise SetupError(f"{self._path}: {error.strerror}") from None
        self.record = record


def _write_durably(path: Path, content: bytes) -> None:
    beside = path.with_name(path.name + ".new")
    with beside.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def path_for(order_file: Path) -> Path:
    return order_file.with_name(order_file.name + ".undo")


def left_behind(path: Path) -> UndoRecord | None:
    """Returns the record of a process that was killed since this machine started."""
    try:
        record = msgspec.json.decode(path.read_bytes(), type=UndoRecord)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError) as error:
        raise SetupError(f"{path}: {error}") from None
    return record if record.boot == _boot() else None


def _boot() -> str:
    return _BOOT.read_text().strip()
