"""Registers the verbs of `rove`, and reports their failures."""

from collections.abc import Callable
from functools import wraps
from importlib.metadata import version
from typing import Annotated, Any

import typer

from node_agent.extensions import ExtensionError
from orchestrator.cli.analyze import analyze
from orchestrator.cli.collect import collect
from orchestrator.cli.compare import compare
from orchestrator.cli.doctor import doctor
from orchestrator.cli.down import down
from orchestrator.cli.enroll import enroll
from orchestrator.cli.events import events
from orchestrator.cli.execute import execute
from orchestrator.cli.explain import explain
from orchestrator.cli.export import export
from orchestrator.cli.groups import GROUPS, printing
from orchestrator.cli.help import Verbs, help_of
from orchestrator.cli.output import console, errors, print_json
from orchestrator.cli.plan import plan
from orchestrator.cli.replay import replay
from orchestrator.cli.report import report
from orchestrator.cli.run import run
from orchestrator.cli.serve import serve
from orchestrator.cli.set import NEGATIVE_NUMBERS, set_
from orchestrator.cli.status import status
from orchestrator.cli.sweep import sweep
from orchestrator.cli.top import top
from orchestrator.cli.up import up
from orchestrator.cli.validate import validate
from orchestrator.errors import RoveError, clear_errors

app = typer.Typer(
    name="rove",
    epilog="Start here: rove run experiments/quickstart.yaml",
    cls=Verbs,
    no_args_is_help=True,
    rich_markup_mode=None,  # its tables of five columns cannot be read at a width of 80
    pretty_exceptions_enable=False,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        console.print(f"rove {version('rove-testbed')}")
        raise typer.Exit


@app.callback()
def rove(
    show_version: Annotated[
        bool, typer.Option("--version", help="Print the version.", is_eager=True, callback=_show_version)
    ] = False,
) -> None:
    """Run stream queries on mobile ad-hoc networks: one experiment file, one command, one report."""


def reporting_failure(verb: Callable[..., None]) -> Callable[..., None]:
    """Wraps ``verb``: turns system errors into RoveErrors, and prints failures as JSON with --json."""

    @wraps(verb)
    def telling(**parameters: Any) -> None:
        try:
            with clear_errors(parameters.get("runs_dir", "")):
                verb(**parameters)
        except RoveError as error:
            if parameters.get("as_json"):
                print_json({"error": _document(error)})
            raise

    return telling


def _document(error: RoveError) -> dict[str, Any]:
    from orchestrator.spec.problems import BadSpec

    document: dict[str, Any] = {"message": str(error), "exit_code": error.exit_code}
    if isinstance(error, BadSpec):
        document["problems"] = [problem._asdict() for problem in error.problems]
    return document


_NAMES = {execute.__name__: "exec", set_.__name__: "set"}
"""Verbs whose names Python has taken."""
_SETTINGS = {set_.__name__: NEGATIVE_NUMBERS}

VERBS: dict[str, tuple[Callable[..., None], ...]] = {
    "Before a run": (validate, plan, doctor, enroll),
    "Run": (run, sweep, up, execute, set_, collect, down),
    "Watch": (status, top, events, serve),
    "Results": (analyze, report, compare, explain, replay, export),
}
"""All verbs, by the section of --help that lists them."""
OF_APPLICATIONS = "Applications"

for section, verbs in VERBS.items():
    for verb in verbs:
        name = verb.__name__
        app.command(
            _NAMES.get(name),
            help=help_of(verb),
            context_settings=_SETTINGS.get(name),
            rich_help_panel=section,
        )(reporting_failure(verb))

for group in GROUPS:
    try:
        found = GROUPS[group]
    except ExtensionError as error:  # another package's: Rove's own verbs still work
        errors.print(str(error), markup=False)
        continue
    added = typer.Typer(cls=Verbs, help=found.help, no_args_is_help=True, rich_markup_mode=None)
    for name, of_group in found.verbs.items():
        added.command(name, help=help_of(of_group))(reporting_failure(printing(of_group)))
    app.add_typer(added, name=group, rich_help_panel=OF_APPLICATIONS)
