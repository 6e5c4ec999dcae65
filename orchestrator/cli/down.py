"""`rove down`: stop runs and remove what they left, keeping their data."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from orchestrator.cli.output import JsonFlag, console, print_json
from orchestrator.cli.references import DEFAULT_ROOT, RUN_HELP, RunsDir, complete_run
from orchestrator.errors import EXIT_FAILED
from orchestrator.lifecycle import teardown
from orchestrator.lifecycle.teardown import Failures, Removal, State
from orchestrator.runs import processes
from orchestrator.runs.run_directory import RunDirectory, all_runs, resolve


def down(
    runs: Annotated[
        list[str] | None,
        typer.Argument(metavar="RUN", help=RUN_HELP, autocompletion=complete_run, show_default=False),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All runs, also living ones.")] = False,
    runs_dir: RunsDir = DEFAULT_ROOT,
    as_json: JsonFlag = False,
) -> None:
    """Stop runs and remove what they left behind; recorded data is kept.

    Without RUN: everything that runs left which are not alive any more (rove was killed, the machine went
    down), and networks of [bold]rove up[/]. A run that is still alive is only touched if it is named or with
    --all: it is asked to stop in order first. What cannot be removed is listed at the end, after all else
    was removed (exit code 1).

    [bold]Examples[/]

      rove down                  clean up after a crash

      rove down quickstart       stop the latest run of this experiment

      rove down --all            stop and clean up everything
    """
    if runs:
        chosen = [run for reference in runs for run in _with_members(resolve(reference, runs_dir))]
    else:
        with_processes = processes.marked_places()
        chosen = [run for run in all_runs(runs_dir) if everything or _needs_cleanup(run, with_processes)]
    removals = [_take_down(run) for run in dict.fromkeys(chosen)]
    failures = Failures()
    tables = [str(path) for path in teardown.remove_abandoned_tables(runs_dir, failures)]
    if as_json:
        runs_left = [asdict(removal) for removal in removals]
        print_json({"runs": runs_left, "tables": tables, "tables_left": failures.texts})
    else:
        for line in _report(removals, tables, failures.texts):
            console.print(line, markup=False, soft_wrap=True)
    if failures.texts or any(removal.left for removal in removals):
        raise typer.Exit(EXIT_FAILED)


def _needs_cleanup(run: RunDirectory, with_processes: set[Path]) -> bool:
    """Whether it is a network of `rove up`, or a run that died or whose processes have not ended."""
    if run.network.exists():
        return True
    try:
        state = teardown.state_of(run)
    except OSError:
        return True  # the teardown reports what is wrong with it
    return state is State.DEAD or (state is State.FINISHED and run.path.resolve() in with_processes)


def _with_members(run: RunDirectory) -> list[RunDirectory]:
    return [run, *run.members()] if run.is_sweep else [run]


def _take_down(run: RunDirectory) -> Removal:
    """Takes down one run; returns its failures, so that the others are taken down as well."""
    failures = Failures()
    removal = None
    with failures.noting("not taken down"):
        stopped = teardown.state_of(run) is State.ALIVE and teardown.stop_orchestrator(run)
        removal = teardown.tear_down(run, stopped)
    return removal or Removal(run.id, left=failures.texts)


def _report(removals: list[Removal], tables: list[str], tables_left: list[str]) -> list[str]:
    lines = [_describe(removal) for removal in removals if removal.did_something]
    lines += [f"removed {path}, left by an analysis" for path in tables]
    lines += [f"STILL THERE: {what}" for what in tables_left]
    return lines or ["Nothing to do: no run has left anything behind."]


def _describe(removal: Removal) -> str:
    done = ["stopped"] if removal.stopped else []
    if removal.processes:
        done.append(f"ended {len(removal.processes)} processes ({', '.join(map(str, removal.processes))})")
    if removal.paths:
        done.append(f"removed {', '.join(removal.paths)}")
    if removal.judged:
        done.append("judged failed, for its orchestrator died")
    if removal.left:
        done.append(f"STILL THERE: {', '.join(removal.left)}")
    else:
        done.append("nothing runs any more" if removal.kept else "nothing is left; data kept")
    done += [f"not here yet: {what}" for what in removal.kept]
    return f"{removal.run}: {'; '.join(done)}"
