"""What `--help` prints: readable on a terminal of 80 columns. Verbs in groups, and options in two columns.

Docstrings of verbs are the texts: paragraphs are wrapped to the terminal, and indented lines, such as
examples, stay lines.
"""

import inspect
import re
from collections.abc import Callable
from typing import Any

from typer.core import TyperGroup

_KEEP_LINES = "\b"
"""Typer does not wrap a paragraph that begins with a line of this."""
_MARKUP = re.compile(r"\[bold\]|\[/\]")
OTHERS = "More"


def help_of(verb: Callable[..., Any]) -> str:
    """Returns the help of a verb by its docstring."""
    text: list[str] = []
    before_is_example = False
    for paragraph in inspect.cleandoc(verb.__doc__ or "").split("\n\n"):
        is_example = paragraph.startswith(" ")
        if is_example and before_is_example:
            text[-1] += f"\n{paragraph}"
        elif is_example:
            text.append(f"{_KEEP_LINES}\n{paragraph}")
        else:
            text.append(_MARKUP.sub("", paragraph))
        before_is_example = is_example
    return "\n\n".join(text).replace(r"\[", "[")


class Verbs(TyperGroup):
    """A group of verbs that lists them by section, each with its whole first sentence."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        sections: dict[str, list[tuple[str, str]]] = {}
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if command is None or command.hidden:
                continue
            section = getattr(command, "rich_help_panel", None) or OTHERS
            sections.setdefault(section, []).append((name, _first_paragraph(command.help)))
        width = max((len(name) for rows in sections.values() for name, _ in rows), default=0)
        for section, rows in sections.items():
            with formatter.section(section if len(sections) > 1 else "Commands"):
                formatter.write_dl([(name.ljust(width), text) for name, text in rows])


def _first_paragraph(text: str | None) -> str:
    return " ".join((text or "").partition("\n\n")[0].split())
