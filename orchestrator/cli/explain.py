"""`rove explain`: why a replica sent where it did, and how a detection came about."""

from typing import Annotated

import typer

from orchestrator.cli.applications import AppOption, recorded_app, with_failure
from orchestrator.cli.output import JsonFlag, print_json, print_shown
from orchestrator.cli.references import DEFAULT_ROOT, RunReference, RunsDir
from orchestrator.errors import BadInput
from orchestrator.runs.run_directory import resolve

MOST = 50


def explain(
    run: RunReference,
    at: Annotated[
        str | None,
        typer.Option(
            "--at",
            help="The moment, since the run's first record (42s, 2 min), as in the report's figures; if not "
            "given, all switches are listed.",
            show_default=False,
        ),
    ] = None,
    replica: Annotated[
        str | None,
        typer.Option(
            "--replica",
            help="Only this one (detect/0), or this node of a detection, or this broker; if not given, all "
            "in use then.",
        ),
    ] = None,
    operator: Annotated[
        str | None,
        typer.Option("--operator", help="List only switches from or to replicas of this operator."),
    ] = None,
    query: Annotated[
        str | None,
        typer.Option("--query", help="Only this query whose interest moves."),
    ] = None,
    event: Annotated[
        str | None,
        typer.Option(
            "--event",
            help="How this detection or situation came about (fire#3: the third of the pattern fire; "
            "ahead#3: the third of the query ahead).",
        ),
    ] = None,
    most: Annotated[int, typer.Option("--most", min=1, help="List at most so many switches.")] = MOST,
    app: AppOption = None,
    runs_dir: RunsDir = DEFAULT_ROOT,
    as_json: JsonFlag = False,
) -> None:
    """Say in words why replicas sent to the downstream replicas that they sent to, how a detection came
    about, or why an interest moved and a situation was delivered.

    Candidates with their costs, what a switch had to gain, where the costs came from and how old they were,
    since when the choice stood, and what it was like before and after the last switch; and whether the way in
    use carries anything. Of a detection of events: what was detected by then, who could talk, and what waited
    where. Of interests that move with objects: why they switched, up to when all had arrived at brokers and
    for whom they waited, and each event that a situation was made of. Without --at, lists the switches, the
    newest if there are many. Reads the telemetry as it is: the run may still go on, and need not have been
    analysed.

    [bold]Examples[/]

      rove explain latest

      rove explain latest --operator recognise

      rove explain latest --at 42s

      rove explain quickstart --at 42s --replica camera/0 --json

      rove explain comet-ferry --at 420s

      rove explain comet-ferry --event fire#3

      rove explain accident --query ahead

      rove explain accident --event ahead#3
    """
    from orchestrator.planning.application import application
    from orchestrator.spec.problems import Unusable
    from orchestrator.spec.units import DURATION

    directory = resolve(run, runs_dir)
    if at is not None and operator is not None:
        raise BadInput("--operator lists switches; with --at, name a replica: --replica detect/0")
    if query is not None and (replica, operator) != (None, None):
        raise BadInput("--query names one part of a run: leave out --replica and --operator")
    part = query or replica
    try:
        at_s = None if at is None else DURATION.read(at)
    except Unusable as error:
        found = error.findings[0]
        raise BadInput(f"--at: {found.message}{f': {found.hint}' if found.hint else ''}") from None
    if event is not None and (at, part, operator) != (None, None, None):
        raise BadInput(
            "--event names one detection or situation: leave out --at, --replica, --operator and --query"
        )
    with with_failure(directory):
        chosen = recorded_app(directory, app, "explain" if event is None else "explain_event")
        kind = application(chosen.kind)
        if event is not None:
            answer = kind.explain_event(directory, chosen.name, event)
        elif at_s is None:
            answer = kind.changes(directory, chosen.name, part, operator, most)
        else:
            answer = kind.explain(directory, chosen.name, at_s, part)
    if as_json:
        print_json(answer.document)
    else:
        print_shown(answer.shown)
