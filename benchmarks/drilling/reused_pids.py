"""A dead run's files name a process that belongs to somebody else by now: it must not be killed."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable

from benchmarks.drilling.drill import RUN_ID, Drill
from benchmarks.drilling.moments import Moment, come
from benchmarks.drilling.settling import settle
from orchestrator.runs.processes import identify, mark
from orchestrator.runs.run_directory import RunDirectory


def reused_pid(drill: Drill) -> None:
    """Kills a run, then changes its journal to name a stranger, in one of several ways."""
    variant = VARIANTS[drill.number % len(VARIANTS)]
    drill.note(variant.__name__.strip("_").replace("_", " "))
    process = drill.start_run(drill.experiment(duration="60 s"))
    come(drill, drill.run, Moment(("up", "measure")[drill.number // len(VARIANTS) % 2]), process)
    process.send_signal(signal.SIGKILL)
    code = drill.wait(process)
    stranger = variant(drill)
    try:
        for verb in (("down", RUN_ID), ("down", "--all"), ("down",)):
            drill.rove(*verb)
        if stranger.poll() is not None:
            drill.found.wrong_verdicts.append(f"rove down ended a stranger, by {-stranger.returncode}")
    finally:
        stranger.kill()
        stranger.wait(10)
    settle(drill, drill.run, code)


def _stranger(**environment: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(["sleep", "300"], env={**os.environ, **environment}, start_new_session=True)


def _rewrite(run: RunDirectory, change: Callable[[dict[str, object]], None]) -> None:
    entries = [json.loads(line) for line in run.journal.read_text().splitlines()]
    for entry in entries:
        change(entry)
    run.journal.write_text("".join(json.dumps(entry) + "\n" for entry in entries))


def _named_with_another_start(drill: Drill) -> "subprocess.Popen[bytes]":
    """The pid was reused: only the start time differs."""
    stranger = _stranger()

    def change(entry: dict[str, object]) -> None:
        if "pid" in entry:
            entry["pid"] = stranger.pid

    _rewrite(drill.run, change)
    return stranger


def _named_exactly(drill: Drill) -> "subprocess.Popen[bytes]":
    """After a reboot, pid and start time may both be equal: only the lock shows that it is not the owner."""
    stranger = _stranger()
    identity = identify(stranger.pid)
    assert identity is not None

    def change(entry: dict[str, object]) -> None:
        if "pid" in entry:
            entry["pid"] = stranger.pid
        if "started" in entry:
            entry["started"] = identity.started

    _rewrite(drill.run, change)
    return stranger


def _marked_by_a_namesake(drill: Drill) -> "subprocess.Popen[bytes]":
    """Another runs directory has a live run with the same id."""
    elsewhere = drill.folder / "elsewhere" / "drill" / RUN_ID
    elsewhere.mkdir(parents=True)
    return _stranger(**mark(RUN_ID, elsewhere))


def _that_reads_the_journal(drill: Drill) -> "subprocess.Popen[bytes]":
    """It is named exactly and has the journal open, like an editor or a backup."""
    code = f"import time; file = open({str(drill.run.journal)!r}); time.sleep(300)"
    stranger = subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
    identity = identify(stranger.pid)
    assert identity is not None

    def change(entry: dict[str, object]) -> None:
        if "pid" in entry:
            entry |= {"pid": stranger.pid, "started": identity.started}

    _rewrite(drill.run, change)
    return stranger


VARIANTS = (_named_with_another_start, _named_exactly, _marked_by_a_namesake, _that_reads_the_journal)
