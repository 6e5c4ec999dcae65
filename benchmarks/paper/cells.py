"""Keeps finished cells in a file of JSON lines, so that none is run twice.

A cell is known by its seed and a digest of all else that its experiment says, defaults included: the same
cell of two figures is one cell, and a changed default makes it another one. What is empty is left out of the
digest, so that cells stay known when the language of experiments gets a section that they do not have.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from orchestrator.runs.files import append_line, open_to_append, read_lines
from orchestrator.spec.experiment import Experiment

_LEFT_OUT = ("name", "sweep", "timeouts", "expect", "load", "seed")
"""Parts of an experiment that are not in the digest: they change nothing in a run, or stand beside it."""

Place = tuple[str, int]
"""Digest and seed."""


class KeptCell(msgspec.Struct, frozen=True):
    """A line of the file. ``seconds``: how long the run took, for ``virtual_s`` of its own time. ``figures``:
    as in summary.json.
    """

    key: str
    backend: str
    seed: int
    factors: dict[str, Any]
    verdict: str
    reasons: tuple[str, ...]
    figures: dict[str, float | None]
    seconds: float
    virtual_s: float
    nodes: int
    commit: str | None = None
    dirty: bool | None = None
    machine: str | None = None

    @property
    def place(self) -> Place:
        return self.key, self.seed

    @property
    def is_valid(self) -> bool:
        return self.verdict == "valid"


def key_of(experiment: Experiment) -> str:
    said = {name: value for name, value in experiment.resolved().items() if name not in _LEFT_OUT}
    said["topology"] = {name: value for name, value in said["topology"].items() if name != "name"}
    return hashlib.sha256(json.dumps(_filled(said), sort_keys=True).encode()).hexdigest()[:20]


def _filled(section: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the section without what is empty, at any depth."""
    inner = {name: _filled(value) if isinstance(value, Mapping) else value for name, value in section.items()}
    return {name: value for name, value in inner.items() if value not in (None, [], (), {})}


class Kept:
    """The finished cells; of several with the same place the last valid one, or else the last.

    >>> kept = Kept(Path("cells.jsonl"))
    >>> kept.add(cell)
    >>> kept.is_done(cell.place)
    True
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._cells: dict[Place, KeptCell] = {}
        for line in read_lines(path):
            try:
                self._take(msgspec.convert(line, KeptCell))
            except msgspec.ValidationError:
                continue  # of another version: the cell is run again

    def add(self, cell: KeptCell) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with open_to_append(self._path) as file:
            if file.tell() and not self._path.read_bytes().endswith(b"\n"):
                file.write(b"\n")  # the last line was torn
            append_line(file, msgspec.to_builtins(cell))
        self._take(cell)

    def is_done(self, place: Place) -> bool:
        """A run that was not valid is tried again."""
        return place in self._cells and self._cells[place].is_valid

    def at(self, place: Place) -> KeptCell:
        return self._cells[place]

    def of(self, key: str) -> list[KeptCell]:
        """Returns the cell's runs in the order of their seeds."""
        return sorted((cell for cell in self._cells.values() if cell.key == key), key=lambda cell: cell.seed)

    def all(self) -> list[KeptCell]:
        return list(self._cells.values())

    def _take(self, cell: KeptCell) -> None:
        if cell.is_valid or not self.is_done(cell.place):
            self._cells[cell.place] = cell
