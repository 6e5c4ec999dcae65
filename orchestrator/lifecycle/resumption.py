"""Finds the sweep that a file began, and what of it is still to be run.

The files that were written when it began say whether it is the same sweep; the verdicts of its runs say which
cells are done. Both are there after a crash at any moment.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from orchestrator.backends.remote.ledger import waiting
from orchestrator.errors import BadInput
from orchestrator.lifecycle.invocation import Earlier, FinishedRun
from orchestrator.lifecycle.teardown import State, state_of, tear_down
from orchestrator.planning.bundle import SPEC, bundle
from orchestrator.planning.sweep import Cell
from orchestrator.runs import run_directory
from orchestrator.runs.files import readable, sync_directory
from orchestrator.runs.journal import Journal, unlocked_path
from orchestrator.runs.run_directory import RunDirectory, member_id, remove_path
from orchestrator.runs.sweep_state import was_cut_off
from orchestrator.runs.verdict import Verdict, read_verdict
from orchestrator.spec.experiment import Experiment

EARLIER = "earlier"
"""The folder, in a sweep's directory, for runs that were run again."""
LOCK_S = 2.0
MOST_DIFFERENCES = 8


class Change(NamedTuple):
    """A value that differs between two files; ``before`` or ``now`` is None if it is not there."""

    at: str
    before: Any
    now: Any

    def __str__(self) -> str:
        return f"{self.at}: was {_shown(self.before)}, is {_shown(self.now)}"


def latest_sweep(root: Path, experiment: str) -> RunDirectory | None:
    """Returns the newest sweep of this experiment, by whichever verb it was begun."""
    runs = (run for run in run_directory.all_runs(root) if run.experiment == experiment)
    return next((run for run in runs if run.is_sweep), None)


def remove_unborn(directory: RunDirectory) -> bool:
    """Removes the directory of a command that was killed before it had written what it wanted to run.

    The journal comes first: a directory with anything but no journal is somebody's own, and stays.
    """
    journals = (directory.journal, unlocked_path(directory.journal))
    is_ours = any(path.exists() for path in journals) or not any(directory.path.iterdir())
    if directory.path.is_symlink() or not is_ours:
        return False
    written = (directory.sweep, directory.manifest, directory.verdict, directory.network)
    if any(path.exists() for path in written) or state_of(directory) is not State.DEAD:
        return False
    remove_path(directory.path)
    return True


def require_unchanged(experiment: Experiment, directory: RunDirectory, anew: str) -> None:
    """Raises BadInput if the file, or one that it names, is not what the sweep began with.

    ``anew``: how to start anew.
    """
    changed = list(_changes(bundle(experiment), directory.path))
    if not changed:
        return
    lines = [f"  {change}" for change in changed[:MOST_DIFFERENCES]]
    if len(changed) > MOST_DIFFERENCES:
        lines.append(f"  and {len(changed) - MOST_DIFFERENCES} more")
    text = f"the file is not what sweep {directory.id} began with, so its runs do not go together:"
    raise BadInput("\n".join([text, *lines, f"Undo the change to go on, or start anew: {anew}"]))


def remaining(directory: RunDirectory, cells: Sequence[Cell], again: frozenset[str]) -> int:
    """Counts the cells that ``take_up`` would leave to be run; changes nothing."""
    return sum(not _stays(read_verdict(_member(directory, cell)), again) for cell in cells)


def take_up(directory: RunDirectory, cells: Sequence[Cell], again: frozenset[str]) -> Earlier:
    """Takes over a sweep that has ended, however it did. Raises BadInput if it still goes on.

    Runs that were cut off, and those whose verdict is in ``again``, are moved out of the way.
    """
    if state_of(directory) is State.ALIVE:
        raise BadInput(
            f"sweep {directory.id} goes on already: rove status {directory.id} shows how far it is"
        )
    if state_of(directory) is State.DEAD:
        tear_down(directory)
    journal = Journal.reopen(directory.journal, LOCK_S)
    if journal is None:
        raise BadInput(f"sweep {directory.id} was just taken up by another rove")
    try:
        directory.verdict.unlink(missing_ok=True)  # it is not over
        finished = {}
        for cell in cells:
            member = _member(directory, cell)
            verdict = _verdict(member)
            if verdict is not None and _stays(verdict, again):
                finished[cell.number] = FinishedRun(member, dict(cell.factors), verdict)
            elif member.path.exists():
                _set_aside(member, directory)
    except BaseException:
        journal.abandon()
        raise
    return Earlier(journal, finished)


def _member(sweep: RunDirectory, cell: Cell) -> RunDirectory:
    return RunDirectory(sweep.path.parent / member_id(sweep.id, cell.number))


def _stays(verdict: Verdict | None, again: frozenset[str]) -> bool:
    return verdict is not None and not was_cut_off(verdict) and verdict.verdict not in again


def _verdict(member: RunDirectory) -> Verdict | None:
    """Returns the verdict of a run; first takes down what is left of one that was killed."""
    if not member.path.exists():
        return None
    if state_of(member) is not State.FINISHED:
        tear_down(member)
    return read_verdict(member)


def _set_aside(member: RunDirectory, sweep: RunDirectory) -> None:
    if nodes := waiting(member.path):
        raise BadInput(
            f"what {member.id} recorded is still on {', '.join(nodes)}: fetch it first, with"
            f" rove collect {sweep.id}"
        )
    folder = sweep.path / EARLIER
    folder.mkdir(exist_ok=True)
    free = (folder / f"{member.id}-{number}" for number in count(1))  # a user may have removed some
    member.path.rename(next(place for place in free if not os.path.lexists(place)))
    sync_directory(folder)
    sync_directory(member.path.parent)


def _changes(now: Mapping[str, bytes], directory: Path) -> Iterator[Change]:
    for name, content in now.items():
        before = readable(directory / name)
        if before == content:
            continue
        known = _document(before) if name == SPEC and before is not None else None
        if known is not None:
            yield from differences(known, yaml.safe_load(content))
        else:
            yield Change(name, None if before is None else "another content", "changed")


def _document(content: bytes) -> Any:
    """Returns what a file of a sweep says; None if it is damaged."""
    try:
        return yaml.safe_load(content)
    except (yaml.YAMLError, UnicodeDecodeError):
        return None


def differences(before: Any, now: Any, at: str = "") -> Iterator[Change]:
    """Yields where two documents differ, as deep as both have the same shape."""
    if isinstance(before, dict) and isinstance(now, dict):
        for key in dict.fromkeys([*before, *now]):
            yield from differences(before.get(key), now.get(key), f"{at}.{key}" if at else str(key))
    elif before != now:
        yield Change(at, before, now)


def _shown(value: Any) -> str:
    if value is None:
        return "not there"
    text = " ".join(str(value).split())
    return text if len(text) <= 80 else f"{text[:77]}…"
