"""How to get back, on disk before each deed: whoever is killed leaves the way in a file beside the order."""

import os
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from node_agent.host.setup.observed import Observed
from node_agent.host.setup.order import SetupOrder
from node_agent.host.setup.steps import Command, SetupError

_BOOT = Path("/proc/sys/kernel/random/boot_id")


class Way(Struct, frozen=True):
    """Commands in the order in which they are to be given. Who managed the interface gets it back last."""

    boot: str
    order: SetupOrder
    before: Observed | None = None
    undo: tuple[Command, ...] = ()
    give_back: tuple[Command, ...] = ()


class Journal:
    """``way`` is what is on disk. Nothing of it is true any more after a restart of the machine."""

    def __init__(self, path: Path, order: SetupOrder) -> None:
        self._path = path
        self.way = Way(_boot(), order)

    def managed(self, undo: tuple[Command, ...]) -> None:
        self._write(replace(self.way, give_back=(*undo, *self.way.give_back)))

    def starts_from(self, before: Observed) -> None:
        self._write(replace(self.way, before=before))

    def intends(self, undo: tuple[Command, ...]) -> None:
        if undo:  # on a memory card each writing takes its time
            self._write(replace(self.way, undo=(*undo, *self.way.undo)))

    def _write(self, way: Way) -> None:
        try:
            _write_durably(self._path, msgspec.json.encode(way))
        except OSError as error:
            raise SetupError(f"{self._path}: {error.strerror}") from None
        self.way = way


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


def left_behind(path: Path) -> Way | None:
    """By a process that was killed since this machine was started."""
    try:
        way = msgspec.json.decode(path.read_bytes(), type=Way)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError) as error:
        raise SetupError(f"{path}: {error}") from None
    return way if way.boot == _boot() else None


def _boot() -> str:
    return _BOOT.read_text().strip()
