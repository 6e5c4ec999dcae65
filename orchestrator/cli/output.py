"""How verbs talk: tables and progress to people, JSON to scripts, errors to stderr."""

import json
import sys
from typing import Annotated, Any

import typer
from rich.console import Console

JsonFlag = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]

console = Console(highlight=False)
errors = Console(stderr=True, highlight=False, soft_wrap=True)


def rove_command(*arguments: str) -> list[str]:
    """`rove` as another process would be started; without arguments, with those it has now."""
    return [sys.executable, "-m", "orchestrator.cli.main", *(arguments or sys.argv[1:])]


def print_json(value: Any) -> None:
    json.dump(value, sys.stdout, indent=2, ensure_ascii=False)
    sys.stdout.write("\n")
