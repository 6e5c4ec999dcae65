"""Looks at the runs of a folder: which have ended, with which verdict, and how much the others recorded."""

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from orchestrator.analytics.streaming.offsets import Mark, Marks
from orchestrator.results.segments import segments_in
from orchestrator.runs.files import read_object
from orchestrator.runs.run_directory import RunDirectory

VIRTUAL = "virtual"


class Looking:
    """Looks again and again. What cannot change any more is not looked at twice."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._may_be_read: dict[str, bool] = {}

    def __call__(self) -> Marks:
        """Returns every run that can be taken in now."""
        found: Marks = {}
        for name, path in _places(self._root):
            with suppress(OSError):  # gone meanwhile, or not for us to read
                if (mark := self._mark(name, path)) is not None:
                    found[name] = mark
        return found

    def _mark(self, name: str, path: Path) -> Mark | None:
        verdict = _regular(path / "verdict.json")
        if verdict is not None:
            self._may_be_read.pop(name, None)
            return f"{verdict.st_size}-{verdict.st_mtime_ns:x}"
        return recorded_bytes(RunDirectory(path)) if self._goes_on(name, RunDirectory(path)) else None

    def _goes_on(self, name: str, directory: RunDirectory) -> bool:
        """Says whether this run may be read while it goes on: in virtual time. An analysis beside a run in
        real time would delay it.
        """
        if name not in self._may_be_read:
            if _regular(directory.manifest) is None:
                return False
            self._may_be_read[name] = read_object(directory.manifest).get("clock") == VIRTUAL
        return self._may_be_read[name]


def recorded_bytes(directory: RunDirectory) -> int:
    """Returns how much the nodes of a run have recorded here so far."""
    return sum(segment.size or 0 for segment in segments_in(directory.nodes))


def largest_run(root: Path) -> int:
    """Returns the bytes of the largest run of a folder: a session that stays is tuned for such runs."""
    largest = 0
    for _, path in _places(root):
        with suppress(OSError):
            largest = max(largest, recorded_bytes(RunDirectory(path)))
    return largest


def _places(root: Path) -> Iterator[tuple[str, Path]]:
    """Yields all directories that can be runs or sweeps, and no links."""
    for experiment in _folders(root):
        for run in _folders(experiment):
            yield f"{experiment.name}/{run.name}", run


def _folders(place: Path) -> list[Path]:
    try:
        with os.scandir(place) as entries:
            names = [
                entry.name
                for entry in entries
                if not entry.name.startswith(".") and entry.is_dir(follow_symlinks=False)
            ]
    except OSError:  # gone meanwhile
        return []
    return [place / name for name in sorted(names)]


def _regular(path: Path) -> os.stat_result | None:
    try:
        found = path.lstat()
    except OSError:
        return None
    return found if stat.S_ISREG(found.st_mode) else None
