"""`rove replay`: what another policy would have chosen on the costs that a run recorded."""

from typing import Annotated

import typer

from orchestrator.cli.applications import AppOption, recorded_app, with_failure
from orchestrator.cli.output import JsonFlag, print_json, print_shown
from orchestrator.cli.references import DEFAULT_ROOT, RunReference, RunsDir
from orchestrator.runs.run_directory import resolve


def complete_policy(incomplete: str) -> list[str]:
    from node_agent.apps.dataflow.switching.policy import POLICIES

    return [name for name in POLICIES if name.startswith(incomplete)]


def replay(
    run: RunReference,
    policy: Annotated[
        str,
        typer.Option(
            "--policy",
            help="As in switching: policy of an experiment: a name, or my_policy.py:decide.",
            autocompletion=complete_policy,
        ),
    ],
    threshold: Annotated[
        str | None,
        typer.Option("--threshold", help="Gain that a switch must exceed: 1, or 10%; if not given, as run."),
    ] = None,
    app: AppOption = None,
    runs_dir: RunsDir = DEFAULT_ROOT,
    as_json: JsonFlag = False,
) -> None:
    """Make every decision of a run again under another policy, on the costs and queues that were recorded.

    Says for each replica how often it would have switched, how long each downstream replica would have been
    used, the mean cost of the ways and how much more that is than the cheapest there was, and how much of
    the time the choice would have been the same.

    [bold]Examples[/]

      rove replay latest --policy static

      rove replay quickstart --policy shortest_path --threshold 10% --json

      rove replay latest --policy my_policy.py:decide
    """
    from orchestrator.planning.application import application

    directory = resolve(run, runs_dir)
    with with_failure(directory):
        chosen = recorded_app(directory, app, "replay")
        answer = application(chosen.kind).replay(directory, chosen.name, policy, threshold)
    if as_json:
        print_json(answer.document)
    else:
        print_shown(answer.shown)
