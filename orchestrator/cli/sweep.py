"""`rove sweep`: all runs of an experiment file with a sweep; goes on where it was stopped."""

import shlex
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli.outcome import conclude, evaluated_or_none
from orchestrator.cli.output import JsonFlag, errors
from orchestrator.cli.performing import Prepared, note_choice, perform, prepare, require_java
from orchestrator.cli.references import DEFAULT_ROOT, ExperimentFile, RunsDir, command_line
from orchestrator.cli.spark_options import SparkConf
from orchestrator.cli.sweep_progress import SweepProgress
from orchestrator.errors import BadInput
from orchestrator.runs.run_directory import RunDirectory, require_id

if TYPE_CHECKING:
    from orchestrator.lifecycle.invocation import Elsewhere, Invocation
    from orchestrator.spark.cluster import Master


DRIVER_MEMORY = "2g"
"""Some of the largest results at the same time, on their way to the disk."""


class Retry(StrEnum):
    FAILED = "failed"
    INVALID = "invalid"
    BOTH = "both"


_AGAIN = {
    Retry.FAILED: frozenset({"failed"}),
    Retry.INVALID: frozenset({"invalid"}),
    Retry.BOTH: frozenset({"failed", "invalid"}),
}
"""The verdicts that each means."""


def sweep(
    file: ExperimentFile,
    on: Annotated[
        str | None,
        typer.Option(
            "--on",
            metavar="MASTER",
            help="Run cells in virtual time on Spark executors: local[2], spark://host:7077, yarn, k8s://…",
            show_default=False,
        ),
    ] = None,
    retry: Annotated[
        Retry | None,
        typer.Option("--retry", help="Run cells with this verdict again.", show_default=False),
    ] = None,
    new: Annotated[bool, typer.Option("--new", help="Start anew instead of going on.")] = False,
    run_id: Annotated[
        str | None,
        typer.Option(
            "--run-id", help="Go on with this sweep, or start one of this id.", show_default="the newest"
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", "-j", min=1, help="Runs at a time, without --on.", show_default="cores"),
    ] = None,
    max_failures: Annotated[
        int | None,
        typer.Option(
            "--max-failures", min=1, help="Start no further run after so many failed.", show_default=False
        ),
    ] = None,
    analyze: Annotated[bool, typer.Option("--analyze/--no-analyze", help="Analyse in Spark.")] = True,
    conf: SparkConf = None,
    runs_dir: RunsDir = DEFAULT_ROOT,
    as_json: JsonFlag = False,
) -> None:
    """Run a sweep, and go on where it was stopped or killed when the same command is given again.

    The longest runs go first. state.json in the sweep's directory says which cells are done, running, failed
    or skipped. The first Ctrl-C stops in order, the second tears down at once. Runs that were stopped are run
    again the next time; runs that failed or are invalid are run again with --retry.
    Exit code: 0 valid, 1 failed, 2 bad input, 3 invalid, 130 interrupted.

    [bold]Examples[/]

      rove sweep experiments/quickstart.yaml

      rove sweep experiments/quickstart.yaml --retry failed

      rove sweep experiments/paper/fig5.yaml --on spark://head:7077

      rove sweep experiments/paper/fig5.yaml --on 'local\\[4]' --no-analyze --json
    """
    from orchestrator.lifecycle.interruption import signals_as_keyboard_interrupt

    where = _where(on, conf or [], jobs)
    prepared = prepare(file, jobs)
    if not prepared.experiment.sweep:
        raise BadInput(f"{file} has no sweep: rove run {shlex.quote(str(file))} runs it")
    if where is not None:
        where.require(prepared)
    if analyze or where is not None:
        require_java()
    begun = None if new else _begun(prepared, run_id, runs_dir)
    if begun is not None:
        _require_same(prepared, begun, f"{command_line('sweep', str(file), runs_dir)} --new")
    elif retry is not None:
        name = prepared.experiment.name
        raise BadInput(f"there is no sweep of {name} under {runs_dir} yet: leave out --retry")
    attempt = _Attempt(prepared, begun, _AGAIN[retry] if retry else frozenset())
    with signals_as_keyboard_interrupt(), ExitStack() as held:

        def create() -> "Invocation":
            return held.enter_context(attempt.invocation(run_id, runs_dir))

        with _executors(where, attempt) as elsewhere:
            invocation, finished = perform(
                create, prepared, attempt.display, jobs, elsewhere=elsewhere, most_failures=max_failures
            )
        experiment = prepared.experiment
        evaluated, interrupted = evaluated_or_none(invocation, finished, experiment, analyze, runs_dir)
    assert invocation.state is not None
    _say_how_to_go_on(file, on, invocation.state.counts(), runs_dir)
    more = {"state": invocation.state.document()}
    conclude(invocation, finished, evaluated, experiment, interrupted, runs_dir, as_json, more)


@dataclass(frozen=True)
class _Where:
    """Executors instead of this machine."""

    master: "Master"
    conf: dict[str, str]

    def require(self, prepared: Prepared) -> None:
        from orchestrator.sweeps.driver import require_virtual_time

        require_virtual_time(prepared.cells)


def _where(on: str | None, conf: list[str], jobs: int | None) -> _Where | None:
    from orchestrator.spark.cluster import parse_master
    from orchestrator.spark.placing import parse_conf

    settings = parse_conf(conf)
    if on is None:
        if settings:
            raise BadInput("--spark-conf is for runs on Spark: add --on")
        return None
    if jobs is not None:
        raise BadInput("--jobs is for runs on this machine: with --on, the executors' cores decide")
    return _Where(parse_master(on), settings)


def _begun(prepared: Prepared, run_id: str | None, runs_dir: Path) -> RunDirectory | None:
    """Returns the sweep to go on with."""
    from orchestrator.lifecycle.resumption import latest_sweep, remove_unborn

    name = prepared.experiment.name
    if run_id is None:
        return latest_sweep(runs_dir, name)
    require_id(run_id)
    named = RunDirectory(runs_dir / name / run_id)
    if not named.path.exists() or remove_unborn(named):
        return None
    if not named.is_sweep:
        raise BadInput(f"run {run_id} is no sweep: choose another --run-id")
    return named


def _require_same(prepared: Prepared, begun: RunDirectory, anew: str) -> None:
    from orchestrator.lifecycle.resumption import require_unchanged

    require_unchanged(prepared.experiment, begun, anew)


@dataclass
class _Attempt:
    """What this command adds to a sweep: all of a new one, or what is missing of one that was ``begun``."""

    prepared: Prepared
    begun: RunDirectory | None
    again: "frozenset[str]"
    display: SweepProgress = field(init=False)

    def __post_init__(self) -> None:
        self.display = SweepProgress(errors, len(self.prepared.cells))

    def has_work(self) -> bool:
        from orchestrator.lifecycle.resumption import remaining

        return self.begun is None or remaining(self.begun, self.prepared.cells, self.again) > 0

    def invocation(self, run_id: str | None, runs_dir: Path) -> "Invocation":
        """Creates the sweep's directory, or takes over the one that is there."""
        from orchestrator.lifecycle.invocation import Invocation
        from orchestrator.lifecycle.resumption import take_up
        from orchestrator.runs.run_directory import create, create_new

        experiment, cells = self.prepared.experiment, self.prepared.cells
        if self.begun is None:
            name = experiment.name
            directory = create(runs_dir, name, run_id) if run_id else create_new(runs_dir, name)
            invocation = Invocation(experiment, cells, directory)
            note_choice(invocation, self.prepared)
            return invocation
        earlier = take_up(self.begun, cells, self.again)
        invocation = Invocation(experiment, cells, self.begun, earlier)
        assert invocation.state is not None
        counts = invocation.state.counts()
        self.display.begin(len(earlier.finished), counts["failed"])
        self.display.say(f"Going on: {counts['done']} of {len(cells)} runs are done, {_bad(counts)}")
        return invocation


def _bad(counts: Mapping[str, int]) -> str:
    return f"{counts['failed']} failed, {counts['waiting']} are to be run"


@contextmanager
def _executors(where: _Where | None, attempt: _Attempt) -> "Iterator[Elsewhere | None]":
    """Starts Spark, unless nothing is left to be run."""
    if where is None or not attempt.has_work():
        yield None
        return
    from orchestrator.spark.session import spark_session
    from orchestrator.sweeps.driver import on_executors

    attempt.display.say(f"Starting Spark on {where.master.url}")
    conf = {"spark.driver.memory": DRIVER_MEMORY, **where.conf}
    with spark_session(master=where.master, conf=conf) as spark, on_executors(spark) as elsewhere:
        yield elsewhere


def _say_how_to_go_on(file: Path, on: str | None, counts: Mapping[str, int], runs_dir: Path) -> None:
    where = ["--on", on] if on else []
    again = command_line("sweep", str(file), runs_dir) + "".join(f" {shlex.quote(part)}" for part in where)
    if counts["skipped"]:
        errors.print(f"{counts['skipped']} runs are still to be done. Go on: {again}", markup=False)
    if counts["failed"]:
        errors.print(f"To run those that failed or are invalid again: {again} --retry both", markup=False)
