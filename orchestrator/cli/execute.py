"""`rove exec`: a command on a node of a network that is up."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

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
    entries = journals.read(directory.journal)
    owner = journals.owner(entries)
    if journals.is_closed(entries):
        raise BadInput(f"run {directory.id} has ended: there is no node to run a command on")
    if not _has_network(entries):
        raise BadInput(
            f"run {directory.id} has no network on this machine: rove exec needs namespaces (netns)"
        )
    if owner is not None and owner.is_alive():
        join(owner.pid)
    execute_on(Mark(directory.id, directory.path), node, command)


def _newest_alive(runs: list[RunDirectory]) -> RunDirectory:
    for directory in runs:
        if journals.is_locked(directory.journal) and _has_network(journals.read(directory.journal)):
            return directory
    raise BadInput("no network is up: rove up TOPOLOGY brings one up")


def _has_network(entries: Iterable[Mapping[str, Any]]) -> bool:
    from orchestrator.backends.netns.network import JOURNAL_KIND

    return any(entry.get("kind") == JOURNAL_KIND for entry in entries)
