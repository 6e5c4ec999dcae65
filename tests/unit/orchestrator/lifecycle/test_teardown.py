"""Teardown ends what carries the run's mark, removes what is temporary, keeps data, touches nothing else."""

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from orchestrator.analytics.store import TableStore
from orchestrator.backends import leftovers
from orchestrator.errors import EXIT_FAILED, RoveError
from orchestrator.lifecycle import teardown
from orchestrator.lifecycle.teardown import (
    Failures,
    State,
    remove_abandoned_tables,
    state_of,
    stop_orchestrator,
    tear_down,
)
from orchestrator.runs import journal as journals
from orchestrator.runs import processes, run_directory
from orchestrator.runs.files import write_json
from orchestrator.runs.journal import Journal
from orchestrator.runs.run_directory import RunDirectory
from tests.unit.rove_process import rove

Spawn = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def spawn() -> Iterator[Spawn]:
    started: list[subprocess.Popen[bytes]] = []

    def start(*command: str, **environment: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            command or ("sleep", "60"),
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait(10)
        assert process.stdout is not None
        process.stdout.close()


@pytest.fixture
def dead_run(tmp_path: Path) -> RunDirectory:
    """A run as a killed orchestrator leaves it: journal open, temporary directory, data."""
    run = run_directory.create(tmp_path, "quick", f"dead-{os.getpid()}")
    journal = Journal.create(run.journal)
    journal.intend("process", what="simulator")
    journal._file.close()  # as the kernel does for a dead process
    run.events.write_text(json.dumps({"kind": "phase", "phase": "measure", "state": "started"}) + "\n")
    (run.temporary / "spark").mkdir(parents=True)
    run.segments("n1").mkdir(parents=True)
    (run.segments("n1") / "0001.jsonl").write_text("{}\n")
    return run


def test_files_that_a_collection_left_half_written_go_and_records_stay(dead_run: RunDirectory) -> None:
    half = dead_run.nodes / "n1" / ".supervisor.log.4711.tmp"
    half.write_text("ha")
    odd = dead_run.nodes / "n1" / ".odd.tmp"
    odd.write_text("a node may call its record so")
    assert str(half) in tear_down(dead_run).paths
    assert not half.exists() and odd.exists()
    assert (dead_run.segments("n1") / "0001.jsonl").exists()


def test_nothing_beyond_a_link_is_removed(dead_run: RunDirectory, tmp_path: Path) -> None:
    elsewhere = tmp_path.parent / f"{tmp_path.name}-elsewhere"
    thesis = elsewhere / "n1" / ".thesis.2024.tmp"
    folder = elsewhere / ".backup.7.tmp"
    staging = elsewhere / "staging"
    for directory in (thesis.parent, folder, staging):
        directory.mkdir(parents=True)
    for file in (thesis, folder / "all.txt", staging / "thesis.tex"):
        file.write_text("precious")
    (dead_run.nodes / "n2").symlink_to(thesis.parent)
    assert not any("thesis" in path for path in tear_down(dead_run).paths)
    shutil.rmtree(dead_run.nodes)
    dead_run.nodes.symlink_to(elsewhere)
    assert dead_run.temporary_paths() == []
    failures = Failures()
    (tmp_path / ".tables").mkdir()
    (tmp_path / ".tables/v3").symlink_to(elsewhere)
    assert remove_abandoned_tables(tmp_path, failures) == []
    shutil.rmtree(tmp_path / ".tables")
    (elsewhere / "v3/staging").mkdir(parents=True)
    (tmp_path / ".tables").symlink_to(elsewhere)
    assert remove_abandoned_tables(tmp_path, failures) == [] and failures.texts == []
    assert thesis.exists() and (folder / "all.txt").exists() and (staging / "thesis.tex").exists()
    assert not (elsewhere / "lock").exists() and not (elsewhere / "v3/lock").exists()


def test_tables_are_not_kept_beyond_a_link(tmp_path: Path) -> None:
    thesis = tmp_path / "elsewhere/staging/thesis.tex"
    thesis.parent.mkdir(parents=True)
    thesis.write_text("precious")
    store = TableStore(tmp_path / "runs")
    store.root.parent.mkdir(parents=True)
    store.root.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RoveError, match="is a link"), store.writing():
        pass
    assert thesis.exists() and not (tmp_path / "elsewhere/lock").exists()


def mark(run: RunDirectory) -> Mapping[str, str]:
    return processes.mark(run.id, run.path)


def test_everything_of_a_dead_run_goes_but_its_data(dead_run: RunDirectory, spawn: Spawn) -> None:
    ours = spawn(**mark(dead_run))
    bare_mark = spawn(ROVE_RUN=dead_run.id)
    longer_id = spawn(ROVE_RUN=f"{dead_run.id}.01")
    namesake = spawn(ROVE_RUN=dead_run.id, ROVE_RUN_DIRECTORY="/elsewhere")
    mentioned = spawn(OTHER=f"ROVE_RUN={dead_run.id}")
    assert state_of(dead_run) is State.DEAD
    removal = tear_down(dead_run)
    assert removal.processes == sorted([ours.pid, bare_mark.pid])
    assert removal.paths == [str(dead_run.temporary)]
    assert removal.left == []
    assert ours.wait(10) == -signal.SIGTERM
    assert [process.poll() for process in (longer_id, namesake, mentioned)] == [None, None, None]
    assert (dead_run.segments("n1") / "0001.jsonl").exists()
    verdict = json.loads(dead_run.verdict.read_text())
    assert (verdict["verdict"], verdict["reasons"]) == ("failed", ["orchestrator died during measure"])
    assert journals.read(dead_run.journal)[-1]["entry"] == "torn_down"
    assert state_of(dead_run) is State.FINISHED
    assert not tear_down(dead_run).did_something


def test_a_process_that_ignores_the_polite_signal_is_killed(
    dead_run: RunDirectory, spawn: Spawn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.lifecycle.teardown.KILL_GRACE_S", 0.2)
    program = "import signal; signal.signal(15, signal.SIG_IGN); print('up', flush=True); signal.pause()"
    deaf = spawn(sys.executable, "-c", program, **mark(dead_run))
    assert deaf.stdout is not None and deaf.stdout.readline() == b"up\n"
    assert tear_down(dead_run).processes == [deaf.pid]
    assert deaf.wait(10) == -signal.SIGKILL


def test_what_the_journal_says_was_meant_is_removed_and_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = ["a kite"]

    def remove(run_id: str, directory: Path, journal: Journal) -> None:
        there.clear()

    kite = leftovers.Kind(
        find=lambda run_id, directory: list(there),
        remove=remove,
        kept=lambda run_id, directory: ["its string"],
    )
    monkeypatch.setattr(leftovers, "LEFTOVERS", {"kite": kite})
    run = run_directory.create(tmp_path, "quick", "windy")
    journal = Journal.create(run.journal)
    journal.intend("kite")
    journal.close()
    assert state_of(run) is State.FINISHED  # but not without traces
    removal = tear_down(run)
    assert removal.left == [] and there == [] and removal.kept == ["its string"]
    assert tear_down(run).kept == ["its string"]

    def leave(run_id: str, directory: Path, journal: Journal) -> None:
        """It is stuck."""

    monkeypatch.setattr(leftovers, "LEFTOVERS", {"kite": leftovers.Kind(find=kite.find, remove=leave)})
    there.append("another")
    assert tear_down(run).left == ["another"]


def test_down_finds_what_survived_a_run_that_ended_in_order(tmp_path: Path, spawn: Spawn) -> None:
    run = run_directory.create(tmp_path / "runs", "quick", "over")
    Journal.create(run.journal).close()
    write_json(run.verdict, {"verdict": "valid"})
    survivor = spawn(**mark(run))
    elsewhere = spawn(ROVE_RUN=run.id, ROVE_RUN_DIRECTORY=str(tmp_path / "other" / "quick" / "over"))
    (removal,) = json.loads(rove(tmp_path / "runs", "down", "--json").stdout)["runs"]
    assert (removal["run"], removal["processes"], removal["judged"]) == ("over", [survivor.pid], False)
    assert elsewhere.poll() is None


def test_a_verdict_that_was_reached_stands(dead_run: RunDirectory) -> None:
    write_json(dead_run.verdict, {"verdict": "valid"})
    removal = tear_down(dead_run)
    assert not removal.judged and removal.paths
    assert json.loads(dead_run.verdict.read_text()) == {"verdict": "valid"}


def test_a_run_that_died_before_its_first_entry_can_be_torn_down(tmp_path: Path) -> None:
    run = run_directory.create(tmp_path, "quick", "unlocked")
    journals.unlocked_path(run.journal).write_bytes(b'{"t": "2026')
    assert [found.id for found in run_directory.all_runs(tmp_path)] == ["unlocked"]
    assert state_of(run) is State.DEAD
    assert tear_down(run).left == []
    assert state_of(run) is State.FINISHED
    assert run.temporary_paths() == []


def test_a_living_run_is_asked_to_stop_and_lets_go(tmp_path: Path, spawn: Spawn) -> None:
    run = run_directory.create(tmp_path, "quick", "alive")
    program = (
        "import pathlib, signal, sys\n"
        "from orchestrator.runs.journal import Journal\n"
        "with Journal.create(pathlib.Path(sys.argv[1])):\n"
        "    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])\n"
        "    print('up', flush=True)\n"
        "    signal.sigwait([signal.SIGINT])\n"
        "    print('asked', flush=True)\n"
    )
    process = spawn(sys.executable, "-c", program, str(run.journal))
    assert process.stdout is not None and process.stdout.readline() == b"up\n"
    assert state_of(run) is State.ALIVE
    assert stop_orchestrator(run)
    assert process.stdout.readline() == b"asked\n"
    assert process.wait(10) == 0
    assert state_of(run) is State.FINISHED


def test_an_orchestrator_that_will_not_stop_is_taken_over(
    tmp_path: Path, spawn: Spawn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.lifecycle.teardown.AT_ONCE_STOP_S", 0.1)
    monkeypatch.setattr("orchestrator.lifecycle.teardown.KILL_GRACE_S", 0.1)
    run = run_directory.create(tmp_path, "quick", "stuck")
    program = (
        "import pathlib, signal, sys, time\n"
        "from orchestrator.runs.journal import Journal\n"
        "journal = Journal.create(pathlib.Path(sys.argv[1]))\n"
        "for number in (signal.SIGINT, signal.SIGTERM): signal.signal(number, signal.SIG_IGN)\n"
        "print('up', flush=True)\n"
        "time.sleep(60)\n"
    )
    process = spawn(sys.executable, "-c", program, str(run.journal))
    assert process.stdout is not None and process.stdout.readline() == b"up\n"
    assert stop_orchestrator(run, patience=0.1)
    assert process.wait(10) == -signal.SIGKILL
    assert tear_down(run, stopped=True).judged


def test_half_made_tables_go_unless_an_analysis_is_at_work(tmp_path: Path) -> None:
    staging = tmp_path / ".tables" / "v1" / "staging"
    (staging / "tuples").mkdir(parents=True)
    with (staging.parent / "lock").open("wb") as lock:
        assert journals.try_lock(lock)
        assert remove_abandoned_tables(tmp_path, Failures()) == []
    assert remove_abandoned_tables(tmp_path, Failures()) == [staging]
    assert not staging.exists()
    assert remove_abandoned_tables(tmp_path, Failures()) == []


def test_one_run_that_cannot_be_taken_down_does_not_keep_the_others_up(
    dead_run: RunDirectory, tmp_path: Path
) -> None:
    broken = RunDirectory(tmp_path / "quick" / "broken")
    broken.journal.mkdir(parents=True)  # no journal can be read or locked
    for version in ("v1", "v2"):
        (tmp_path / ".tables" / version / "staging").mkdir(parents=True)
    (tmp_path / ".tables" / "v1" / "lock").mkdir()
    done = rove(tmp_path, "down")
    assert done.returncode == EXIT_FAILED
    assert "broken: STILL THERE: not taken down: Is a directory" in done.stdout
    assert not dead_run.temporary.exists() and dead_run.verdict.exists()
    assert "v1/staging: Is a directory" in done.stdout
    assert not (tmp_path / ".tables" / "v2" / "staging").exists()


def test_what_cannot_be_removed_keeps_nothing_else_from_being_removed(
    dead_run: RunDirectory, spawn: Spawn, monkeypatch: pytest.MonkeyPatch
) -> None:
    stays = dead_run.path / ".stays.tmp"
    for path in (stays, dead_run.path / ".zzz.tmp"):
        path.touch()

    def refuse(run_id: str, directory: Path, journal: Journal) -> None:
        raise OSError(errno.EBUSY, "Device or resource busy")

    def cannot_look(run_id: str, directory: Path) -> list[str]:
        raise RoveError("the lake is frozen")

    with Journal.take_over(dead_run.journal, 1.0) or pytest.fail() as journal:
        journal.intend("kite")
    dead_run.journal.write_text(dead_run.journal.read_text().rsplit("\n", 2)[0] + "\n")  # not closed
    monkeypatch.setattr(leftovers, "LEFTOVERS", {"kite": leftovers.Kind(cannot_look, refuse)})

    def busy(path: Path) -> None:
        if path == stays:
            raise OSError(errno.EBUSY, "Device or resource busy")
        run_directory.remove_path(path)

    monkeypatch.setattr(teardown, "remove_path", busy)
    ours = spawn(**mark(dead_run))
    removal = tear_down(dead_run)
    assert removal.processes == [ours.pid] and not dead_run.temporary.exists()
    assert not (dead_run.path / ".zzz.tmp").exists() and removal.judged
    assert removal.left == [
        str(stays),
        "what it made cannot be looked for: the lake is frozen",
        "what it made: Device or resource busy",
        f"{stays}: Device or resource busy",
    ]


def test_a_recycled_pid_is_not_signalled(tmp_path: Path, spawn: Spawn) -> None:
    bystander = spawn()
    actual = processes.identify(bystander.pid)
    assert actual is not None
    former = processes.Identity(bystander.pid, actual.started - 1)
    assert not processes.request_stop(former)
    assert processes.end([former], 0.1) == []
    assert bystander.poll() is None


def test_a_journal_cannot_have_another_process_stopped(tmp_path: Path, spawn: Spawn) -> None:
    run = run_directory.create(tmp_path, "quick", "trap")
    Journal.create(run.journal).abandon()
    bystander, locker = spawn(), spawn("flock", "-x", str(run.journal), "sleep", "60")
    named = processes.identify(bystander.pid)
    assert named is not None
    first, *rest = journals.read(run.journal)
    lines = [{**first, "pid": named.pid, "started": named.started}, *rest]
    run.journal.write_text("".join(json.dumps(line) + "\n" for line in lines))
    while state_of(run) is not State.ALIVE:
        assert locker.poll() is None
    assert journals.owner(journals.read(run.journal)) == named
    assert journals.holder(run.journal) is None
    assert not stop_orchestrator(run, patience=0.1)
    assert bystander.poll() is None and locker.poll() is None


def test_a_process_that_only_reads_the_journal_does_not_hold_it(tmp_path: Path) -> None:
    run = run_directory.create(tmp_path, "quick", "read")
    with Journal.create(run.journal):
        assert journals.holder(run.journal) == processes.this_process()
    assert journals.holder(run.journal) is None
    with run.journal.open("rb") as file:
        assert journals.holder(run.journal) is None
        assert journals.try_lock(file, shared=True)
        assert journals.holder(run.journal) is None
