"""The directory of a run, ``runs/<experiment>/<run-id>/``: its files, and how users refer to it."""

import difflib
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from node_agent.apps.base import KEPT
from orchestrator.errors import BadInput
from orchestrator.foreign_names import UnsafeName, path_inside
from orchestrator.runs.durable import make_directory
from orchestrator.runs.files import read_object, sync_directory
from orchestrator.runs.journal import unlocked_path

LATEST = "latest"
_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_HALF_WRITTEN = re.compile(r"\..+\.\d+\.tmp")
"""The names that ``write_atomic`` uses; files that a node recorded under other names are kept."""
_MEMBER = re.compile(r"(?P<sweep>.+)\.(?P<number>\d+)")


class RunExists(BadInput):
    """The id is taken."""


@dataclass(frozen=True)
class RunDirectory:
    path: Path

    @property
    def id(self) -> str:
        return self.path.name

    @property
    def experiment(self) -> str:
        return self.path.parent.name

    @property
    def spec(self) -> Path:
        return self.path / "spec.yaml"

    @property
    def manifest(self) -> Path:
        return self.path / "manifest.json"

    @property
    def events(self) -> Path:
        return self.path / "events.jsonl"

    @property
    def journal(self) -> Path:
        return self.path / "journal.jsonl"

    @property
    def nodes(self) -> Path:
        return self.path / "nodes"

    @property
    def radio(self) -> Path:
        return self.path / "radio"

    @property
    def verdict(self) -> Path:
        return self.path / "verdict.json"

    @property
    def summary(self) -> Path:
        return self.path / "summary.json"

    @property
    def report(self) -> Path:
        return self.path / "report.html"

    @property
    def sweep(self) -> Path:
        """Only in a sweep's directory: its runs."""
        return self.path / "sweep.json"

    @property
    def network(self) -> Path:
        """Only for a network without a run (`rove up`), while it is up: which node is where."""
        return self.path / "network.json"

    @property
    def temporary(self) -> Path:
        """The only place for files that must not outlive the run."""
        return self.path / "tmp"

    def segments(self, node: str) -> Path:
        return self.nodes / node / "segments"

    @property
    def is_sweep(self) -> bool:
        return self.sweep.exists()

    @property
    def invocation(self) -> str:
        """The id of the sweep that this run is a member of, or its own."""
        match = _MEMBER.fullmatch(self.id)
        return match["sweep"] if match else self.id

    def members(self) -> list["RunDirectory"]:
        """Returns the runs of this sweep, by sweep.json; a listed one may not have started."""
        listed = read_object(self.sweep).get("members")
        found = []
        for name in listed if isinstance(listed, list) else ():
            with suppress(UnsafeName):  # a foreign file may name anything
                path = path_inside(self.path.parent, str(name))
                if path.parent == self.path.parent and path.is_dir():
                    found.append(RunDirectory(path))
        return found

    def created(self) -> float:
        """Seconds since the epoch. The spec is written once, at the start."""
        for path in (self.spec, self.path):
            try:
                return path.stat().st_mtime
            except OSError:  # none is there, or a broken link
                continue
        return 0.0

    def temporary_paths(self) -> list[Path]:
        """Returns the temporary directory, half-written files, and what agents kept in case they were killed;
        none behind a link.
        """
        own = (self.temporary, *sorted(self.path.glob(".*.tmp")))
        collected = () if self.nodes.is_symlink() else (*_half_written(self.nodes), *_kept(self.nodes))
        return [*(path for path in own if os.path.lexists(path)), *sorted(collected)]

    def remove_temporary(self) -> list[Path]:
        found = self.temporary_paths()
        for path in found:
            remove_path(path)
        return found


def _kept(nodes: Path) -> Iterator[Path]:
    with suppress(OSError):
        for node in sorted(nodes.iterdir()):
            if not node.is_symlink() and os.path.lexists(node / KEPT):
                yield node / KEPT


def _half_written(directory: Path) -> Iterator[Path]:
    for place, _, names in os.walk(directory):  # it follows no link below the first
        yield from (Path(place, name) for name in names if _HALF_WRITTEN.fullmatch(name))


def remove_path(path: Path) -> None:
    """Removes a file, a link, or a directory with its content."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def new_run_id(now: datetime) -> str:
    """``now`` is in UTC."""
    return f"{now:%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"


def member_id(sweep: str, number: int) -> str:
    return f"{sweep}.{number:02d}"


def create(root: Path, experiment: str, run_id: str) -> RunDirectory:
    """Creates the directory of a new run. Its id is unique in the whole
    root: processes are marked with it."""
    require_id(run_id)
    return _create(root, experiment, run_id)


def require_id(run_id: str) -> None:
    """Raises BadInput if a user's id for a run could not be used, or would lead elsewhere."""
    if run_id == LATEST or not _RUN_ID.fullmatch(run_id):
        raise BadInput(
            f"run id {run_id!r} cannot be used: letters, digits, - and _ only, at most 64, and not {LATEST!r}"
        )


def create_new(root: Path, experiment: str) -> RunDirectory:
    """Does the same with an id made from date and time, also if others create runs at this moment."""
    while True:
        try:
            return create(root, experiment, new_run_id(datetime.now(UTC)))
        except RunExists:
            continue  # with other random digits


def create_member(sweep: RunDirectory, number: int) -> RunDirectory:
    """Does the same for one run of a sweep. Only these have ids with a dot."""
    return _create(sweep.path.parent.parent, sweep.experiment, member_id(sweep.id, number))


def _create(root: Path, experiment: str, run_id: str) -> RunDirectory:
    path = root / experiment / run_id
    taken = next((other for other in root.glob(f"[!.]*/{run_id}")), None)
    if taken is not None:
        raise RunExists(f"run {run_id} already exists ({taken}): choose another --run-id or leave it out")
    try:
        make_directory(path.parent)
        _make(path, run_id)
    except OSError as error:
        raise BadInput(f"cannot create {path}: {error.strerror}: choose another --runs-dir") from error
    sync_directory(path.parent)
    return RunDirectory(path)


def _make(path: Path, run_id: str) -> None:
    try:
        path.mkdir()
    except FileExistsError as error:
        raise RunExists(f"run {run_id} was just started by another rove: choose another --run-id") from error


def point_latest(directory: RunDirectory) -> None:
    """Lets ``runs/<experiment>/latest`` name this run; readers see the old target or the new one."""
    link = directory.path / ".latest.tmp"
    link.symlink_to(directory.id)
    link.replace(directory.path.parent / LATEST)
    sync_directory(directory.path.parent)


def all_runs(root: Path) -> list[RunDirectory]:
    """Returns every run under ``root``, newest first, the members of a sweep right after it."""
    found = [RunDirectory(path) for path in root.glob("[!.]*/*") if _is_run(path)]
    started = {(run.experiment, run.id): run.created() for run in found}

    def newest_first(run: RunDirectory) -> tuple[float, str, int]:
        first = started.get((run.experiment, run.invocation), run.created())
        return (-first, run.invocation, _by_number(run.path))

    return sorted(found, key=newest_first)


def resolve(reference: str, root: Path) -> RunDirectory:
    """Finds a run by path, id, name of its experiment (its latest run), or ``latest`` (the newest of all)."""
    runs = all_runs(root)
    if reference == LATEST:
        if not runs:
            raise BadInput(f"there are no runs under {root} yet: start one with rove run FILE")
        return runs[0]
    for run in runs:
        if run.id == reference:
            return run
    for directory in (root / reference, Path(reference)):
        if run_at_path := _run_at(directory):
            return run_at_path
    if "://" in reference:
        raise BadInput(f"{reference!r} is an address, and runs are directories: mount that file system here")
    for directory in (root / reference, Path(reference)):
        if directory.is_dir():
            raise BadInput(f"{directory} is no run: it has no manifest.json, and there is no run in it")
    names = sorted({run.experiment for run in runs} | {run.id for run in runs})
    close = difflib.get_close_matches(reference, [*names, LATEST], n=1)
    hint = f"did you mean {close[0]}?" if close else "rove status lists what there is"
    raise BadInput(f"no run {reference!r} under {root}: {hint}")


def _run_at(path: Path) -> RunDirectory | None:
    """Returns the run in this directory, or the latest of the experiment whose directory this is."""
    if not path.is_dir():
        return None
    path = path.resolve()
    if _is_run(path):
        return RunDirectory(path)
    latest = path / LATEST
    if latest.exists():
        return RunDirectory(latest.resolve())
    return next(iter(run for run in all_runs(path.parent) if run.path.parent == path), None)


def _is_run(path: Path) -> bool:
    if path.is_symlink() or not path.is_dir():
        return False
    directory = RunDirectory(path)
    signs = (directory.journal, unlocked_path(directory.journal), directory.manifest, directory.verdict)
    return any(sign.exists() for sign in signs)


def _by_number(path: Path) -> int:
    match = _MEMBER.fullmatch(path.name)
    return int(match["number"]) if match else 0
