"""Kills `rove run` with `kill -9` or Ctrl-C, between phases and at random times."""

import os
import signal
import subprocess
import time
from collections.abc import Callable
from typing import Any

from benchmarks.drilling.checks import check_left, flaws, verdict_of
from benchmarks.drilling.drill import Drill
from benchmarks.drilling.moments import BOUNDARIES, ENTRIES, VERDICT, Moment, at_random, come
from benchmarks.drilling.settling import follow_up, settle
from orchestrator.errors import EXIT_OK
from orchestrator.runs.run_directory import all_runs

SIM = {"backend": "sim"}
MOMENTS = (*BOUNDARIES, *ENTRIES, VERDICT)
Strike = Callable[[Drill, "subprocess.Popen[str]"], None]


def kill(drill: Drill, **changes: Any) -> None:
    _struck(drill, _chosen(drill), _kill, **changes)


def kill_any_time(drill: Drill) -> None:
    _struck(drill, at_random(drill), _kill)


def interrupt(drill: Drill, **changes: Any) -> None:
    _struck(drill, _chosen(drill), _interrupt, **changes)


def interrupt_any_time(drill: Drill) -> None:
    _struck(drill, at_random(drill), _interrupt)


def interrupt_twice(drill: Drill, **changes: Any) -> None:
    _struck(drill, _chosen(drill), _interrupt_twice, **changes)


def interrupt_twice_any_time(drill: Drill) -> None:
    _struck(drill, at_random(drill), _interrupt_twice)


def kill_sim(drill: Drill) -> None:
    kill(drill, **SIM)


def interrupt_sim(drill: Drill) -> None:
    interrupt(drill, **SIM) if drill.number % 2 else interrupt_twice(drill, **SIM)


def kill_sweep(drill: Drill) -> None:
    """Kills the parent of two runs side by side in virtual time: all three must be judged and cleaned up."""
    moment = at_random(drill, 4.0)
    drill.note(f"a sweep is killed at {moment}")
    process = drill.start_run(drill.experiment(**SIM, sweep={"seed": [1, 2]}))
    if come(drill, drill.run, moment, process):
        _kill(drill, process)
    code = drill.wait(process)
    judged = {run.id: bool(verdict_of(run)) for run in all_runs(drill.runs)}
    down = drill.rove("down", "--json")
    if down.returncode != EXIT_OK:
        drill.found.leftovers.append(
            f"rove down: {down.returncode}: {down.stdout[-300:]}{down.stderr[-300:]}"
        )
    for run in all_runs(drill.runs):
        check_left(drill, run)
        whole = verdict_of(run).get("verdict") == "valid" and code < 0
        if not verdict_of(run) or (whole and not judged[run.id]):
            drill.found.wrong_verdicts.append(
                f"{run.id}: {verdict_of(run) or 'no verdict'}, exit code {code}"
            )
        elif whole and not run.is_sweep:
            drill.found.wrong_verdicts.extend(f"{run.id}: valid, but {flaw}" for flaw in flaws(drill, run))
    follow_up(drill)


def _chosen(drill: Drill) -> Moment:
    """Takes each in turn, so that few drills cover many."""
    return MOMENTS[drill.number % len(MOMENTS)]


def _struck(drill: Drill, moment: Moment, strike: Strike, **changes: Any) -> None:
    process = drill.start_run(drill.experiment(**changes))
    drill.note(f"{strike.__name__.strip('_')} at {moment}")
    if come(drill, drill.run, moment, process):
        strike(drill, process)
    code = drill.wait(process)
    settle(drill, drill.run, code)


def _kill(drill: Drill, process: "subprocess.Popen[str]") -> None:
    _send(process, signal.SIGKILL)


def _interrupt(drill: Drill, process: "subprocess.Popen[str]") -> None:
    _send(process, signal.SIGINT)


def _interrupt_twice(drill: Drill, process: "subprocess.Popen[str]") -> None:
    _send(process, signal.SIGINT)
    time.sleep(drill.dice.choice((0.01, 0.1, 0.5)))
    _send(process, signal.SIGINT)


def _send(process: "subprocess.Popen[str]", number: signal.Signals) -> None:
    if process.poll() is None:
        os.kill(process.pid, number)
