"""Looks at the runs of a folder: which have ended, with which verdict, and how much the others recorded."""

import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from orchestrator.analytics.streaming.offsets import Mark, Marks
from orchestrator.results.segments import segments_in, size_of
from orchestrator.results.truth import TRUTH
from orchestrator.runs.files import read_object
from orchestrator.runs.run_directory import RunDirectory

VIRTUAL = "virtual"
SETTLED_S = 10.0
"""A run whose directory is copied here may have its verdict before its records: they are looked at again so
much later, until they are the same twice.
"""


class _Content(NamedTuple):
    """What a run with a verdict had when it was looked at, in seconds of ``now``."""

    verdict: str
    bytes: int
    seen_s: float
    is_settled: bool = False


class Looking:
    """Looks again and again. What cannot change any more is not looked at twice."""

    def __init__(self, root: Path, now: Callable[[], float] = time.monotonic) -> None:
        self._root = root
        self._now = now
        self._may_be_read: dict[str, bool] = {}
        self._contents: dict[str, _Content] = {}

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
            known = f"{verdict.st_size}-{verdict.st_mtime_ns:x}"
            return f"{known}-{self._content(name, path, known)}"
        self._contents.pop(name, None)
        return recorded_bytes(RunDirectory(path)) if self._goes_on(name, RunDirectory(path)) else None

    def _content(self, name: str, path: Path, verdict: str) -> int:
        """Returns how many bytes of a run are there."""
        known, now = self._contents.get(name), self._now()
        if known is None or known.verdict != verdict:
            self._contents[name] = _Content(verdict, _bytes(path), now)
        elif not known.is_settled and now - known.seen_s >= SETTLED_S:
            found = _bytes(path)
            self._contents[name] = _Content(verdict, found, now, is_settled=found == known.bytes)
        return self._contents[name].bytes

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


def _bytes(path: Path) -> int:
    """Returns how much of a run is here of all that an analysis reads."""
    directory = RunDirectory(path)
    files = [directory.manifest, *(directory.radio / name for name in TRUTH)]
    return recorded_bytes(directory) + sum(size_of(file) or 0 for file in files)


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
