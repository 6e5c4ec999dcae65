"""Entry point of `rove`: the verbs, and what becomes of errors."""

import sys
from importlib.metadata import version
from typing import Annotated

import typer

from orchestrator.cli.analyze import analyze
from orchestrator.cli.doctor import doctor
from orchestrator.cli.down import down
from orchestrator.cli.events import events
from orchestrator.cli.execute import execute
from orchestrator.cli.output import console, errors
from orchestrator.cli.plan import plan
from orchestrator.cli.report import report
from orchestrator.cli.run import run
from orchestrator.cli.status import status
from orchestrator.cli.up import up
from orchestrator.cli.validate import validate
from orchestrator.errors import RoveError

app = typer.Typer(
    name="rove",
    epilog="Start here: rove run experiments/quickstart.yaml",
    no_args_is_help=True,
    rich_markup_mode="rich",
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


for verb in (validate, plan, up, run, status, events, execute, down, analyze, report, doctor):
    app.command("exec" if verb is execute else None)(verb)


def main() -> None:
    try:
        app()
    except RoveError as error:
        errors.print(str(error), markup=False)
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
