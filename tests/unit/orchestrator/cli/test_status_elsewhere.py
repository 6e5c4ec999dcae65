"""`rove status` says what runs still have on other machines; and a full disk is named, with what to do."""

import errno
import json
import os
from pathlib import Path

import pytest

from orchestrator.backends.core.session_leftovers import JOURNAL_KIND
from orchestrator.backends.leftovers import noted
from orchestrator.backends.remote.ledger import KIND
from orchestrator.errors import system_error_text
from orchestrator.runs import run_directory
from orchestrator.runs.files import write_atomic
from orchestrator.runs.journal import Journal
from orchestrator.runs.run_directory import RunDirectory
from tests.unit.rove_process import rove


def journal_of(run: RunDirectory) -> Journal:
    journal = Journal.create(run.journal)
    journal.intend(JOURNAL_KIND, host="core@lab")
    for node in ("n1", "n2"):
        journal.intend(KIND, node=node, place=f"/p/{node}", supervisor=["k"], lease=600.0)
    journal.done(2, ended=True)
    return journal


def test_a_dead_run_names_its_supervisors_its_session_and_its_records(tmp_path: Path) -> None:
    run = run_directory.create(tmp_path, "lab", "r1")
    journal_of(run).abandon()
    assert noted(run.path) == ["a supervisor on n2", "CORE session that had just been begun on core@lab"]
    for words in (("status",), ("status", "r1")):
        shown = rove(tmp_path, *words).stdout
        assert f"not seen to end: {', '.join(noted(run.path))}: rove down r1 ends it" in shown
        assert "still on n1, n2: rove collect r1 fetches it" in shown
    (row,) = json.loads(rove(tmp_path, "status", "--json").stdout)["runs"]
    assert row["elsewhere"] == noted(run.path) and row["waiting"] == ["n1", "n2"]


def test_a_living_run_says_where_it_runs_and_a_tidied_one_nothing(tmp_path: Path) -> None:
    run = run_directory.create(tmp_path, "lab", "r1")
    journal = journal_of(run)
    assert (
        "runs elsewhere: a supervisor on n2, CORE session that had just been begun on core@lab"
        in rove(tmp_path, "status").stdout
    )
    journal.done(1, removed=True)
    for number in (2, 3):
        journal.done(number, ended=True, collected=True, removed=True)
    journal.close()
    assert noted(run.path) == []
    assert "elsewhere" not in rove(tmp_path, "status").stdout


def test_a_full_disk_is_named_with_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left on device") as failed:
        write_atomic(tmp_path / "verdict.json", b"{}")
    assert list(tmp_path.iterdir()) == [], "nothing half-written is left"
    text = system_error_text(failed.value, tmp_path)
    assert text.startswith(f"No space left on device: {tmp_path / 'verdict.json'}: make room on that disk")
    nameless = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert str(tmp_path) in system_error_text(nameless, tmp_path)
