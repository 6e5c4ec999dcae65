"""Output of verbs: tables and progress for people, JSON for scripts, errors to stderr.

All output passes through here, so that no text from a node, a file or a name can control the terminal.
"""

import json
import re
import sys
from collections.abc import Iterable, Iterator
from typing import Annotated, Any

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from orchestrator.foreign_text import plain

JsonFlag = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]

_PERHAPS_UNSAFE = re.compile(r"[^\n -~]+")


class PlainConsole(Console):
    """Prints control characters within text as ``\\x1b``; colours and cursor moves of our own pass."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        for segment in super().render(renderable, options):
            text, style, control = segment
            yield segment if control else Segment(plain(text), style)


console = PlainConsole(highlight=False)
errors = PlainConsole(stderr=True, highlight=False, soft_wrap=True)


def rove_command(*arguments: str) -> list[str]:
    """Returns the command line that starts `rove` as another process; by default with the same arguments."""
    return [sys.executable, "-m", "orchestrator.cli.main", *(arguments or sys.argv[1:])]


def json_text(value: Any, indent: int | None = None) -> str:
    """JSON without a character that a terminal would obey: those are written as ``\\u009b``."""
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    return _PERHAPS_UNSAFE.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    return "".join(char if char.isprintable() else json.dumps(char)[1:-1] for char in found[0])


def print_json(value: Any) -> None:
    sys.stdout.write(json_text(value, indent=2) + "\n")


def print_shown(shown: Iterable[RenderableType]) -> None:
    """Prints text without wrapping, and tables as wide as the terminal."""
    for each in shown:
        console.print(each, soft_wrap=isinstance(each, Text))
