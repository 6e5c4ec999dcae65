"""`rove replay`: what another policy would have chosen on the costs that a run recorded."""

from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from orchestrator.cli.output import JsonFlag, console, print_json
from orchestrator.cli.references import DEFAULT_ROOT, RunReference, RunsDir
from orchestrator.errors import BadInput
from orchestrator.runs.run_directory import resolve

if TYPE_CHECKING:
    from node_agent.apps.dataflow.model.decision import Threshold
    from orchestrator.apps.dataflow.decisions.replay import Replay

CAVEAT = (
    "Only the choices are replayed. Had they been made, queues and the load on the network would have been "
    "others, and so the costs: run the experiment with the policy to know what it achieves."
)


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
    import msgspec

    from orchestrator.apps.dataflow.decisions.history import read_history
    from orchestrator.apps.dataflow.decisions.replay import replay as replayed

    policy = _policy(policy)
    gain = None if threshold is None else _threshold(threshold)
    made = replayed(read_history(resolve(run, runs_dir)), policy, gain)
    if as_json:
        print_json({**msgspec.to_builtins(made), "caveat": CAVEAT})
        return
    run_rule = f"{', '.join(made.run_policies)} with threshold {', '.join(made.run_thresholds)}"
    rule = f"{made.policy} with threshold {made.threshold or ', '.join(made.run_thresholds)}"
    console.print(f"run {made.run}: {rule}, replayed beside {run_rule}, as run", markup=False, soft_wrap=True)
    console.print(_table(made))
    for failed in made.failed:
        text = f"{failed.name} failed {failed.count} times, last at {failed.place}: {failed.error}"
        console.print(f"{text}; shortest_path chose in its place", markup=False, soft_wrap=True)
    console.print(CAVEAT, markup=False, soft_wrap=True)


def _policy(name: str) -> str:
    """A registered policy, or a user's file as an absolute path, after it was tried. Raises BadInput."""
    from pathlib import Path

    from node_agent.apps.dataflow.switching.chooser import try_policy
    from node_agent.apps.dataflow.switching.policy import POLICIES
    from node_agent.extensions import ExtensionError
    from node_agent.extensions.files import is_reference
    from orchestrator.spec.problems import did_you_mean

    if is_reference(name):
        name = str(Path(name).resolve())
    elif name not in POLICIES:
        hint = did_you_mean(name, POLICIES) or f"there are {', '.join(POLICIES)}, and my_policy.py:decide"
        raise BadInput(f"there is no policy {name!r}: {hint}")
    try:
        try_policy(name, POLICIES[name])
    except ExtensionError as error:
        raise BadInput(f"--policy: {error}") from None
    return name


def _threshold(text: str) -> "Threshold":
    from orchestrator.apps.dataflow.spec.switching import read_threshold, threshold_of
    from orchestrator.spec.problems import Unusable

    try:
        return threshold_of(read_threshold(text if "%" in text else float(text)))
    except Unusable as error:
        raise BadInput(f"--threshold: {error}") from None
    except ValueError:
        raise BadInput(f"--threshold: {text!r} is neither a number nor a share like 10%") from None


def _table(made: "Replay") -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("replica", no_wrap=True)
    table.add_column("", no_wrap=True)
    for heading in ("switches", "no route", "mean cost", "above best", "same choice"):
        table.add_column(heading, justify="right")
    table.add_column("time at", overflow="fold")
    for each in made.compared:
        for name, course in (("as run", each.run), ("replayed", each.replayed)):
            first = name == "as run"
            table.add_row(
                f"{each.replica} → {each.downstream}" if first else "",
                name,
                str(course.switches),
                f"{course.no_route_s:.1f} s",
                _cost(course.mean_cost),
                _cost(course.regret),
                "" if first else f"{each.agreement:.0%}",
                ", ".join(f"{to} {seconds:.1f} s" for to, seconds in course.seconds.items()) or "–",
            )
    return table


def _cost(cost: float | None) -> str:
    return "–" if cost is None else f"{cost:.2f}"
