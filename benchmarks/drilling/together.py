"""Runs several `rove` in one runs directory at once: none may hurt another."""

import json
import signal
from collections.abc import Callable
from typing import Any

from benchmarks.drilling.checks import check_left, check_verdict, own_reasons
from benchmarks.drilling.drill import RUN_ID, Drill
from benchmarks.drilling.moments import Moment, come
from benchmarks.drilling.settling import follow_up, settle
from orchestrator.errors import EXIT_BAD_INPUT
from orchestrator.runs.run_directory import LATEST, RunDirectory, all_runs

BRIEF = {"routing": "ground_truth", "warmup": "0 s", "duration": "2 s"}
SIM = {**BRIEF, "backend": "sim"}


def together(drill: Drill) -> None:
    variant = VARIANTS[drill.number % len(VARIANTS)]
    drill.note(variant.__name__.strip("_").replace("_", " "))
    variant(drill)


def _many_at_the_same_second(drill: Drill, count: int = 5, **changes: Any) -> None:
    file = drill.experiment(**(changes or SIM))
    started = [drill.start("run", file, "--no-analyze") for _ in range(count)]
    codes = sorted(drill.wait(process) for process in started)
    runs = all_runs(drill.runs)
    if len(runs) != count:
        drill.found.wrong_verdicts.append(f"{count} commands made {len(runs)} runs: {drill.stderr[-300:]}")
    if any(code not in (0, 3) for code in codes):
        drill.found.wrong_verdicts.append(f"exit codes {codes}: {drill.stderr[-300:]}")
    for run in runs:
        _check(drill, run)
    latest = drill.run.path.with_name(LATEST)
    if not latest.is_symlink() or latest.resolve() not in [run.path for run in runs]:
        drill.found.lost.append("latest names no run")


def _two_networks_at_the_same_second(drill: Drill) -> None:
    _many_at_the_same_second(drill, 2, **BRIEF)


def _two_sweeps(drill: Drill) -> None:
    file = drill.experiment(**SIM, sweep={"seed": [1, 2]})
    started = [drill.start("run", file, "--no-analyze") for _ in range(2)]
    codes = [drill.wait(process) for process in started]
    runs = all_runs(drill.runs)
    members = [run for run in runs if not run.is_sweep]
    if codes != [0, 0] or len(runs) != 6 or len(members) != 4:
        drill.found.wrong_verdicts.append(
            f"two sweeps: exit codes {codes}, {len(runs)} runs: {drill.stderr[-300:]}"
        )
    for run in members:
        _check(drill, run)


def _one_id_twice(drill: Drill) -> None:
    file = drill.experiment(**BRIEF)
    started = [drill.start_run(file) for _ in range(2)]
    codes = sorted(drill.wait(process) for process in started)
    if codes[-1] not in (EXIT_BAD_INPUT, 3) or EXIT_BAD_INPUT not in codes:
        drill.found.wrong_verdicts.append(f"one id for two runs: exit codes {codes}: {drill.stderr[-300:]}")
    code = next(code for code in codes if code != EXIT_BAD_INPUT)
    settle(drill, drill.run, code)


def _one_id_in_two_experiments(drill: Drill) -> None:
    """Starts two runs with one id: ids are unique under the whole root; at worst both run, and each ends by
    itself.
    """
    files = [drill.experiment(name, **{**BRIEF, "name": name}) for name in ("first", "second")]
    started = [drill.start_run(file) for file in files]
    codes = [drill.wait(process) for process in started]
    if not all(code in (0, 2, 3) for code in codes) or codes == [2, 2]:
        drill.found.wrong_verdicts.append(f"exit codes {codes}: {drill.stderr[-300:]}")
    for run in all_runs(drill.runs):
        _check(drill, run)


def _verbs_beside_it(drill: Drill) -> None:
    process = drill.start_run(drill.experiment(duration="4 s"))
    come(drill, drill.run, Moment("up"), process)
    for verb in (("status",), ("down",), ("status", RUN_ID), ("down",), ("events", RUN_ID)):
        done = drill.rove(*verb)
        if done.returncode != 0:
            drill.found.wrong_verdicts.append(
                f"rove {' '.join(verb)}: {done.returncode}: {done.stderr[-200:]}"
            )
    busy = drill.rove("collect", RUN_ID, "--no-analyze")
    if busy.returncode != EXIT_BAD_INPUT and process.poll() is None:
        drill.found.wrong_verdicts.append(f"rove collect of a living run: {busy.returncode}")
    code = drill.wait(process)
    if own_reasons(drill.run):
        drill.found.wrong_verdicts.append(f"hurt by verbs beside it: {own_reasons(drill.run)}")
    settle(drill, drill.run, code)


def _two_downs_at_once(drill: Drill) -> None:
    process = drill.start_run(drill.experiment(duration="60 s"))
    come(drill, drill.run, Moment("measure"), process)
    downs = [drill.start("down", RUN_ID, "--json") for _ in range(2)]
    codes = [drill.wait(down) for down in downs]
    if codes != [0, 0]:
        drill.found.leftovers.append(f"two rove down at once: exit codes {codes}: {drill.stderr[-300:]}")
    settle(drill, drill.run, drill.wait(process))


def _down_of_what_was_just_killed(drill: Drill) -> None:
    """Two processes clean up at the same time, a third lists."""
    process = drill.start_run(drill.experiment(duration="60 s"))
    come(drill, drill.run, Moment("measure"), process)
    process.send_signal(signal.SIGKILL)
    code = drill.wait(process)
    verbs = [drill.start(*verb) for verb in (("down",), ("down", "--all"), ("status", "--json"))]
    codes = [drill.wait(verb) for verb in verbs]
    if codes != [0, 0, 0]:
        drill.found.leftovers.append(f"two rove down at once: exit codes {codes}: {drill.stderr[-300:]}")
    settle(drill, drill.run, code)


def _check(drill: Drill, run: RunDirectory) -> None:
    document = json.loads(run.verdict.read_bytes()) if run.verdict.exists() else {}
    if own_reasons(run) or not document:
        drill.found.wrong_verdicts.append(f"{run.id}: {document or 'no verdict'}")
    else:
        check_verdict(drill, run, {"valid": 0, "invalid": 3, "failed": 1}[document["verdict"]])
    check_left(drill, run)


def _run_after_run(drill: Drill) -> None:
    """Starts one run while the other is being taken down."""
    process = drill.start_run(drill.experiment(duration="60 s"))
    come(drill, drill.run, Moment("measure"), process)
    process.send_signal(signal.SIGINT)
    come(drill, drill.run, Moment("stop"), process)
    follow_up(drill)
    settle(drill, drill.run, drill.wait(process), follow=False)


VARIANTS: tuple[Callable[[Drill], None], ...] = (
    _many_at_the_same_second,
    _two_networks_at_the_same_second,
    _two_sweeps,
    _one_id_twice,
    _one_id_in_two_experiments,
    _verbs_beside_it,
    _two_downs_at_once,
    _down_of_what_was_just_killed,
    _run_after_run,
)
