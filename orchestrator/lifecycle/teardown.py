"""Takes down what a run left behind, by its journal and a scan for its mark; proves that nothing is left.

It touches only processes that carry the run's mark and files inside the run's directory. It keeps recorded
data.
"""

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path

from orchestrator.backends import leftovers
from orchestrator.errors import RoveError
from orchestrator.runs import journal as journals
from orchestrator.runs import processes
from orchestrator.runs.files import open_to_append, read_lines, write_json
from orchestrator.runs.journal import TORN_DOWN, Journal
from orchestrator.runs.processes import Identity
from orchestrator.runs.run_directory import RunDirectory, remove_path
from orchestrator.runs.verdict import judge_dead

ORDERLY_STOP_S = 60.0
AT_ONCE_STOP_S = 15.0
KILL_GRACE_S = 3.0
TAKE_OVER_S = 10.0


class State(StrEnum):
    ALIVE = "alive"
    FINISHED = "finished"
    DEAD = "dead"


@dataclass(frozen=True)
class Removal:
    """What a teardown did. ``left``: what could not be removed. ``kept``: what stays on purpose."""

    run: str
    stopped: bool = False
    judged: bool = False
    processes: list[int] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)

    @property
    def did_something(self) -> bool:
        return bool(self.stopped or self.judged or self.processes or self.paths or self.left or self.kept)


def state_of(directory: RunDirectory) -> State:
    if journals.is_locked(directory.journal):
        return State.ALIVE
    entries = journals.read(directory.journal)
    # A run copied from another machine may lack its journal: then its verdict shows that it ended.
    ended = journals.is_closed(entries) if entries else directory.verdict.exists()
    return State.FINISHED if ended else State.DEAD


def last_phase(directory: RunDirectory) -> str | None:
    phases = [event.get("phase") for event in read_lines(directory.events) if event.get("kind") == "phase"]
    named = [phase for phase in phases if isinstance(phase, str)]
    return named[-1] if named else None


def stop_orchestrator(directory: RunDirectory, patience: float = ORDERLY_STOP_S) -> bool:
    """Stops a living orchestrator: asks it to stop in order, then at once, then kills it.

    Returns False if the process that the journal names does not hold it.
    """
    owner = journals.holder(directory.journal)
    if owner is None:
        return False
    for seconds in (patience, AT_ONCE_STOP_S):
        if not processes.request_stop(owner) or _let_go(directory, owner, seconds):
            return True
    processes.end([owner], KILL_GRACE_S)
    return True


def _let_go(directory: RunDirectory, owner: Identity, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if journals.holder(directory.journal) != owner:
            return True
        time.sleep(0.05)
    return False


def tear_down(directory: RunDirectory, stopped: bool = False) -> Removal:
    """Removes what is left of a run whose orchestrator is gone. May be repeated.

    It goes on after a failure: ``left`` lists what could not be removed, with the reason.
    """
    state = state_of(directory)
    if state is State.FINISHED and not _traces(directory):
        return Removal(directory.id, stopped, kept=_kept(directory))
    journal = Journal.take_over(directory.journal, TAKE_OVER_S)
    if journal is None:
        return Removal(directory.id, stopped, left=[f"{directory.journal} is locked by a living process"])
    failures = Failures()
    ended: list[Identity] = []
    with failures.noting("its processes"):
        ended = processes.end(processes.marked(directory.id, directory.path), KILL_GRACE_S)
    for kind in _kinds(directory):
        with failures.noting("what it made"):
            kind.remove(directory.id, directory.path, journal)
    paths = []
    for path in directory.temporary_paths():
        with failures.noting(str(path)):
            remove_path(path)
            paths.append(path)
    # A network of `rove up` has no verdict, so it gets none here.
    judged = state is not State.FINISHED and not directory.verdict.exists()
    if judged:
        with failures.noting(str(directory.verdict)):
            write_json(directory.verdict, judge_dead(last_phase(directory)).document())
    removal = Removal(
        run=directory.id,
        stopped=stopped,
        judged=judged,
        processes=[process.pid for process in ended],
        paths=[str(path) for path in paths],
        left=[*_traces(directory), *failures.texts],
        kept=_kept(directory),
    )
    with failures.noting(str(directory.journal)):
        journal.close(TORN_DOWN, processes=removal.processes, paths=removal.paths, left=removal.left)
    return replace(removal, left=[*dict.fromkeys([*removal.left, *failures.texts])])


class Failures:
    """Notes errors, so that the work after them is still done."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    @contextmanager
    def noting(self, what: str) -> Iterator[None]:
        try:
            yield
        except (OSError, RoveError) as error:
            reason = error.strerror if isinstance(error, OSError) else None
            self.texts.append(f"{what}: {reason or error}")


def remove_abandoned_tables(root: Path, failures: Failures) -> list[Path]:
    """Removes tables that a killed analysis was preparing; the store's lock shows whether one still is.

    It does not follow symbolic links.
    """
    removed = []
    for staging in sorted(root.glob(".tables/*/staging")):
        if any(path.is_symlink() for path in (staging, *staging.parents[:2])):
            continue
        with failures.noting(str(staging)), open_to_append(staging.parent / "lock") as lock:
            if journals.try_lock(lock):
                shutil.rmtree(staging)
                removed.append(staging)
    return removed


def _traces(directory: RunDirectory) -> list[str]:
    """Looks again for anything of the run that should be gone."""
    failures = Failures()
    found: list[str] = []
    with failures.noting("its processes cannot be looked for"):
        found += [f"process {process.pid}" for process in processes.marked(directory.id, directory.path)]
    for kind in _kinds(directory):
        with failures.noting("what it made cannot be looked for"):
            found += kind.find(directory.id, directory.path)
    return list(dict.fromkeys([*found, *map(str, directory.temporary_paths()), *failures.texts]))


def _kept(directory: RunDirectory) -> list[str]:
    """Lists what stays on other machines on purpose."""
    return [what for kind in _kinds(directory) for what in kind.kept(directory.id, directory.path)]


def _kinds(directory: RunDirectory) -> list[leftovers.Kind]:
    """Returns the kinds of things the run meant to create that do not go away with their processes."""
    intended = dict.fromkeys(entry.get("kind") for entry in journals.read(directory.journal))
    return [leftovers.LEFTOVERS[name] for name in leftovers.LEFTOVERS if name in intended]
