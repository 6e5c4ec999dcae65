"""What applications answer to verbs of `rove`: for programs, and for people. Printing it is up to the CLI."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from rich.console import RenderableType


class Answer(NamedTuple):
    document: dict[str, Any]
    shown: "Sequence[RenderableType]"


class VerbGroup(NamedTuple):
    """Verbs of an application, `rove gallery add`: functions with typer's annotations that return answers."""

    help: str
    verbs: Mapping[str, Callable[..., Answer]]
