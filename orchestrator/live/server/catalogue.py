"""Lists the runs that the server shows. Cheap for a thousand runs: what has ended is read once.

Only runs that this module found itself can be asked for: a name from a request is looked up, nothing else.
"""

import threading
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from orchestrator.errors import RoveError
from orchestrator.lifecycle.teardown import State, state_of
from orchestrator.runs.files import read_object
from orchestrator.runs.run_directory import RunDirectory, all_runs

FRESH_S = 1.0
"""A list is not older than this, unless looking takes long."""
REST = 20
"""How much longer than a look the time between two looks is."""
MOST_RUNS = 10_000
STATES = {State.ALIVE: "running", State.FINISHED: "ended", State.DEAD: "died"}
UNREADABLE = "unreadable"
_LATEST_S = datetime(9999, 1, 1, tzinfo=UTC).timestamp()

_Stamp = tuple[int, ...]


class Row(NamedTuple):
    """One run in the list. ``stamp``: of the files that it was read from."""

    directory: RunDirectory
    state: str
    verdict: str | None
    started: float
    is_sweep: bool
    stamp: _Stamp

    def document(self, members: Sequence[str]) -> dict[str, Any]:
        run = self.directory
        return {
            "id": run.id,
            "experiment": run.experiment,
            "state": self.state,
            "verdict": self.verdict,
            "started": datetime.fromtimestamp(self.started, UTC).isoformat(timespec="milliseconds"),
            "sweep": run.invocation if run.invocation != run.id else None,
            "members": list(members) if self.is_sweep else None,
        }


class Catalogue:
    """``root``: all runs under it. ``chosen``: only these, and the members of those that are sweeps.

    Its methods block, for a few milliseconds a thousand runs: call them in a thread.
    """

    def __init__(self, root: Path | None, chosen: Sequence[RunDirectory] = ()) -> None:
        self._root = root
        self._chosen = chosen
        self._rows: dict[str, Row] = {}
        self._looked = float("-inf")
        self._took = 0.0
        self._lock = threading.Lock()

    def rows(self) -> dict[str, Row]:
        """Returns the runs by id, newest first, members of a sweep right after it."""
        with self._lock:
            began = time.monotonic()
            if began - self._looked > max(FRESH_S, REST * self._took):
                found: dict[str, Row] = {}
                for run in self._found()[:MOST_RUNS]:
                    found.setdefault(run.id, self._row(run))
                self._rows = found
                self._looked = time.monotonic()
                self._took = self._looked - began
            return self._rows

    def find(self, run_id: str) -> RunDirectory | None:
        rows = self._rows if run_id in self._rows else self.rows()
        row = rows.get(run_id)
        return row.directory if row is not None else None

    def row(self, run_id: str) -> Row | None:
        return self.rows().get(run_id)

    def documents(self) -> list[dict[str, Any]]:
        rows = self.rows()
        members: dict[str, list[str]] = {}
        for row in rows.values():
            run = row.directory
            if run.invocation != run.id:
                members.setdefault(run.invocation, []).append(run.id)
        return [row.document(members.get(run_id, ())) for run_id, row in rows.items()]

    def going_on(self) -> list[RunDirectory]:
        """Returns the runs that go on, sweeps themselves not included."""
        alive = STATES[State.ALIVE]
        return [row.directory for row in self.rows().values() if row.state == alive and not row.is_sweep]

    def living(self) -> RunDirectory | None:
        """Returns the newest run that goes on; of a sweep that goes on, its newest member that does."""
        alive = [row for row in self.rows().values() if row.state == STATES[State.ALIVE] and not row.is_sweep]
        return max(alive, key=lambda row: row.started).directory if alive else None

    def _found(self) -> list[RunDirectory]:
        if self._root is not None:
            return [run for run in all_runs(self._root) if _is_named(run)]
        found = (run for each in self._chosen for run in (each, *(each.members() if each.is_sweep else ())))
        return [run for run in found if _is_named(run)]

    def _row(self, run: RunDirectory) -> Row:
        stamp = _stamp(run)
        before = self._rows.get(run.id)
        known = before is not None and before.directory == run and before.stamp == stamp
        if before is not None and known and before.state != STATES[State.ALIVE]:
            return before
        try:
            state = STATES[state_of(run)]
            verdict = read_object(run.verdict).get("verdict")
        except (OSError, ValueError, RoveError):
            state, verdict = UNREADABLE, None
        verdict = verdict if isinstance(verdict, str) else None
        started = min(max(run.created(), 0.0), _LATEST_S)  # a file may have any time
        return Row(run, state, verdict, started, run.is_sweep, stamp)


def _is_named(run: RunDirectory) -> bool:
    """Whether a page can name the run. Other programs may make directories whose names are no text."""
    try:
        f"{run.experiment}/{run.id}".encode()
    except UnicodeEncodeError:
        return False
    return True


def _stamp(run: RunDirectory) -> _Stamp:
    """Changes when a run ends, dies and is taken down, or is judged anew."""
    found: list[int] = []
    for path in (run.journal, run.verdict, run.sweep):
        try:
            status = path.stat()
            found += (status.st_mtime_ns, status.st_size)
        except OSError:
            found += (0, 0)
    return tuple(found)
