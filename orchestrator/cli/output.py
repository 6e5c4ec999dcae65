"""How verbs talk: tables and progress to people, JSON to scripts, errors to stderr."""

import json
import sys
from typing import Annotated, Any

import typer
from rich.console import Console

JsonFlag = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]

console = Console(highlight=False)
errors = Console(stderr=True, highlight=False, soft_wrap=True)


def print_json(value: Any) -> None:
    json.dump(value, sys.stdout, indent=2, ensure_ascii=False)
    sys.stdout.write("\n")
