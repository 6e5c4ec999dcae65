"""`kill -9` and Ctrl-C of `rove run`, where one phase gives way to the next and at random."""

import os
import signal
import subprocess
import time
from collections.abc import Callable
from typing import Any

from benchmarks.drilling.drill import Drill
from benchmarks.drilling.moments import BOUNDARIES, ENTRIES, VERDICT, Moment, at_random, come
from benchmarks.drilling.settling import settle

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


def _chosen(drill: Drill) -> Moment:
    """Each in turn, so that few drills meet many."""
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
