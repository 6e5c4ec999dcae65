"""Entry point of `rove`: the verbs, and what becomes of errors."""

import sys

import typer

from orchestrator.cli.output import errors
from orchestrator.errors import RoveError

app = typer.Typer(
    name="rove",
    help="Run stream queries on mobile ad-hoc networks: one experiment file, one command, one report.",
    epilog="Start here: rove run experiments/quickstart.yaml",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)


def main() -> None:
    try:
        app()
    except RoveError as error:
        errors.print(str(error), markup=False)
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
