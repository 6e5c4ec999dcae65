"""`rove explain`: why a replica sent where it did."""

from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from orchestrator.cli.output import JsonFlag, console, print_json
from orchestrator.cli.references import DEFAULT_ROOT, RunReference, RunsDir
from orchestrator.errors import BadInput
from orchestrator.runs.run_directory import resolve

if TYPE_CHECKING:
    from orchestrator.apps.dataflow.decisions.explain import Dead, Explanation


def explain(
    run: RunReference,
    at: Annotated[
        str,
        typer.Option(
            "--at", help="The moment, since the run's first record (42s, 2 min), as in the report's figures."
        ),
    ],
    replica: Annotated[
        str | None,
        typer.Option(
            "--replica", help="Only this one (detect/0); if not given, all that streams passed then."
        ),
    ] = None,
    runs_dir: RunsDir = DEFAULT_ROOT,
    as_json: JsonFlag = False,
) -> None:
    """Say in words why replicas sent to the downstream replicas that they sent to.

    Candidates with their costs, what a switch had to gain, where the costs came from and how old they were,
    since when the choice stood, and what it was like before and after the last switch. Reads the telemetry
    as it is: the run may still go on, and need not have been analysed.

    [bold]Examples[/]

      rove explain latest --at 42s

      rove explain quickstart --at 42s --replica camera/0 --json
    """
    import msgspec

    from orchestrator.apps.dataflow.decisions.explain import explain as explanations
    from orchestrator.apps.dataflow.decisions.explain import faults_at
    from orchestrator.apps.dataflow.decisions.history import read_history
    from orchestrator.spec.problems import Unusable
    from orchestrator.spec.units import DURATION

    directory = resolve(run, runs_dir)
    try:
        at_s = DURATION.read(at)
    except Unusable as error:
        found = error.findings[0]
        raise BadInput(f"--at: {found.message}{f': {found.hint}' if found.hint else ''}") from None
    history = read_history(directory)
    made = explanations(history, at_s, replica)
    faults = faults_at(history, at_s)
    if as_json:
        document = {"run": history.run, "at_s": at_s, "faults": faults, "decisions": made}
        print_json(msgspec.to_builtins(document))
        return
    nodes = {r.id: r.node for r in history.plan.replicas}
    console.print(f"run {history.run} at {at_s:g} s", markup=False)
    for fault in faults:
        until = "to the end" if fault.until_s is None else f"until {fault.until_s:.1f} s"
        _line(f"fault: {fault.fault}, from {fault.from_s:.1f} s {until}")
    for each in made:
        _print(each, at_s, nodes)


def _line(text: str) -> None:
    console.print(text, markup=False, soft_wrap=True)


def _why_dead(dead: "Dead", at_s: float) -> str:
    killed = f"killed at {dead.killed_s:.1f} s"
    if dead.back_s is None:
        return f"its agent was dead, {killed} and not started again"
    if at_s < dead.back_s:
        return f"its agent was dead, {killed}, back at {dead.back_s:.1f} s"
    return f"its agent, {killed}, was back since {dead.back_s:.1f} s and had decided nothing yet"


def _print(each: "Explanation", at_s: float, nodes: dict[str, str]) -> None:
    from orchestrator.apps.dataflow.decisions.reasons import shown, summary

    to = f"{each.to} on {nodes.get(each.to, '?')}" if each.to else "no route"
    if each.dead is not None:
        _line(f"\n{each.replica} on {each.node} → {each.downstream}: {_why_dead(each.dead, at_s)}")
        _line(f"  Its last decision before that, at {each.decided_s:.1f} s: {to}. {each.why}")
        return
    held = f"for {at_s - each.since_s:.1f} s, since {each.since_s:.1f} s"
    _line(f"\n{each.replica} on {each.node} → {each.downstream}: {to}, {held}")
    _line(f"  {each.why}")
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("  replica", no_wrap=True)
    table.add_column("node", no_wrap=True)
    headings = ["link", "to the sinks", *(["of all inputs"] if each.shared else []), "queue"]
    for heading in headings:
        table.add_column(heading, justify="right")
    for candidate in each.candidates:
        chosen = candidate.to == each.to or candidate.to in each.shares
        costs = [shown(candidate.link), shown(candidate.path)]
        costs += [shown(candidate.aggregate)] if each.shared else []
        queue = "–" if candidate.queue is None else str(candidate.queue)
        name, node = escape(candidate.to), escape(nodes.get(candidate.to, "?"))
        table.add_row(f"{'*' if chosen else ' '} {name}", node, *costs, queue)
    console.print(table)
    _line(
        f"  Decided at {each.decided_s:.1f} s by {each.policy}, threshold {each.threshold}; costs are "
        f"{each.metric} from {each.source}, {each.cost_age_s:.1f} s old then."
    )
    if (switched := each.switched) is None:
        _line("  It is the first choice since the agent started.")
        return
    _line(f"  Last switch at {switched.at_s:.1f} s, from {switched.old or 'no route'}: {switched.why}")
    _line(f"    before, at {switched.before_s:.1f} s: {summary(switched.before, each.shared)}")
    _line(f"    then: {summary(switched.after, each.shared)}")
