"""`rove exec`: a command on a node of a network that is up."""

from typing import Annotated

import typer

from orchestrator.cli.references import DEFAULT_ROOT, RUN_HELP, RunsDir, complete_run
from orchestrator.errors import BadInput
from orchestrator.runs import journal as journals
from orchestrator.runs.run_directory import RunDirectory, all_runs, resolve


def execute(
    node: Annotated[str, typer.Argument(metavar="NODE", help="Name of a node.", show_default=False)],
    command: Annotated[
        list[str], typer.Argument(metavar="-- COMMAND", help="What to run there.", show_default=False)
    ],
    run: Annotated[
        str | None,
        typer.Option("--run", help=RUN_HELP, autocompletion=complete_run, show_default="the newest alive"),
    ] = None,
    runs_dir: RunsDir = DEFAULT_ROOT,
) -> None:
    """Run a command on a node: of the newest network that is up, or of the run named.

    It has your terminal and your files, and the node's network. Its exit code is that of the command.

    [bold]Examples[/]

      rove exec a -- ping -c 3 10.77.0.5

      rove exec e -- iperf3 -s

      rove exec a --run line-5 -- ip route
    """
    from orchestrator.backends.netns.enter import execute_on
    from orchestrator.backends.netns.marks import Mark
    from orchestrator.backends.netns.rootless import join

    directory = _newest_alive(all_runs(runs_dir)) if run is None else resolve(run, runs_dir)
    owner = journals.owner(journals.read(directory.journal))
    if owner is not None and owner.is_alive():
        join(owner.pid)
    execute_on(Mark(directory.id, directory.path), node, command)


def _newest_alive(runs: list[RunDirectory]) -> RunDirectory:
    for directory in runs:
        if journals.is_locked(directory.journal) and _has_network(directory):
            return directory
    raise BadInput("no network is up: rove up TOPOLOGY brings one up")


def _has_network(directory: RunDirectory) -> bool:
    from orchestrator.backends.netns.network import JOURNAL_KIND

    return any(entry.get("kind") == JOURNAL_KIND for entry in journals.read(directory.journal))
