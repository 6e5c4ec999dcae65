"""Says which files of the store count, and of which runs they hold what: one small document, replaced as a
whole.

Every change writes the next document, ``log/<number>.json``, and renames it into place: it happens or it does
not. The one with the highest number counts. Files that it does not name are leftovers of an interrupted
change.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from node_agent.model.checked import Checked, Refused
from orchestrator.runs.files import MOST_BYTES, readable, write_atomic

RECORDS, TABLES = "records", "tables"
"""The layers: what was read from run directories, and the tables made of it."""


class Held(Struct, frozen=True):
    """A run: its number in this document, and from which input what is kept was read, and made.
    ``judged``: by which verdict its row of ``runs`` is.
    """

    number: int
    read: str = ""
    made: str = ""
    judged: str = ""


class StoredFile(Struct, frozen=True):
    """A Parquet file. ``of``: the kind of rows in it; ``path`` is relative to the store; ``runs`` by their
    number."""

    layer: str
    of: str
    path: str
    size: int
    runs: tuple[int, ...]


class State(Struct, frozen=True):
    """``number``: of the document; ``names``: how many names of files were given out."""

    number: int = 0
    names: int = 0
    runs: dict[str, Held] = {}
    files: tuple[StoredFile, ...] = ()

    def files_of(self, layer: str, of: str, runs: Iterable[str]) -> list[StoredFile]:
        """Returns the files that have rows of one of the runs."""
        wanted = self.numbers(runs)
        return [
            file
            for file in self.files
            if file.layer == layer and file.of == of and not wanted.isdisjoint(file.runs)
        ]

    def numbers(self, runs: Iterable[str]) -> set[int]:
        return {self.runs[run].number for run in runs if run in self.runs}

    def numbered(self, runs: Iterable[str]) -> "State":
        """Gives a number to every run that has none."""
        known = dict(self.runs)
        after = max((held.number for held in known.values()), default=0) + 1
        for run in runs:
            if run not in known:
                known[run] = Held(after)
                after += 1
        return replace(self, runs=known)

    def marked(self, marks: Mapping[str, Mapping[str, str]]) -> "State":
        """Changes what is said of runs."""
        return replace(
            self, runs=self.runs | {run: replace(self.runs[run], **mark) for run, mark in marks.items()}
        )

    def intact(self, root: Path) -> "State":
        """Forgets what was read or made of runs if one of their files is missing or has another size."""
        sound: list[StoredFile] = []
        lost: list[StoredFile] = []
        for file in self.files:
            path = root / file.path
            (sound if path.is_file() and path.stat().st_size == file.size else lost).append(file)
        if not lost:
            return self
        unread, unmade = (
            {number for file in lost if file.layer == layer for number in file.runs}
            for layer in (RECORDS, TABLES)
        )
        runs = {
            run: replace(
                held,
                read="" if held.number in unread else held.read,
                made="" if held.number in unmade else held.made,
            )
            for run, held in self.runs.items()
        }
        return replace(self, runs=runs, files=tuple(sound))


_states: Checked[State] = Checked(State, MOST_BYTES)


def load(directory: Path) -> State:
    """Returns the latest document; an empty one if there is none that can be read."""
    for path in sorted(directory.glob("*.json"), reverse=True):
        if not path.stem.isdecimal() or (found := readable(path)) is None:
            continue
        try:
            return _states.decode(found)
        except Refused:
            continue
    return State()


def save(directory: Path, state: State) -> State:
    """Writes the next document: from then on it counts. Returns it."""
    following = replace(state, number=state.number + 1)
    directory.mkdir(exist_ok=True)
    write_atomic(directory / f"{following.number:08d}.json", msgspec.json.encode(following))
    for path in directory.glob("*.json"):
        if path.stem.isdecimal() and int(path.stem) < state.number:  # the one before is kept
            path.unlink(missing_ok=True)
    return following
