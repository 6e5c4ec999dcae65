"""References from a section to other files.

Paths are relative to the file that contains the section. Validation reads the files.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationInfo

from orchestrator.spec.problems import shown, unusable
from orchestrator.spec.source_file import MOST_BYTES, Unreadable, read_bytes

FOLDER = "folder"
"""The key of the validation context that holds the folder of relative paths."""


@dataclass(frozen=True)
class FileReference:
    """A file that a section names. Two files with the same content are equal, wherever they are, so that a
    copy counts as its original.
    """

    path: Path = field(compare=False)
    """Absolute, so that every process on this machine finds the same file."""
    digest: str

    def contents(self) -> dict[str, bytes]:
        """Returns the contents of the file and of files that belong to it, by name."""
        return {self.path.name: read_bytes(self.path, MOST_BYTES)}

    def written(self, file: str) -> str:
        """Returns what to write in a section so that it names a copy stored as ``file``."""
        return file


R = TypeVar("R", bound=FileReference)


def reader(kind: type[R], example: str) -> Callable[[Any, ValidationInfo], R]:
    """Returns a validator that turns the name of a file into a reference to it."""

    def read(value: Any, info: ValidationInfo) -> R:
        if not isinstance(value, str):
            raise unusable(f"{shown(value)} is not the name of a file", f"for example file: {example}")
        path = (info.context or {}).get(FOLDER, Path()).absolute() / value
        try:
            contents = kind(path, "").contents()
        except Unreadable as error:
            raise unusable(f"{shown(value)}: {error.message}", error.hint) from None
        return kind(path, " ".join(hashlib.sha256(content).hexdigest() for content in contents.values()))

    return read


def with_format(value: Any, format_of: Callable[[str], str | None], hint: str) -> Any:
    """Returns a section whose ``format`` is that of the name of its ``file``, if it says none itself."""
    if not isinstance(value, dict) or value.get("format") is not None:
        return value
    name = value.get("file")
    if not isinstance(name, str):
        return value
    if (written_as := format_of(name)) is None:
        raise unusable(f"{shown(name)}: the name does not tell the format", hint, at=("file",))
    return {**value, "format": written_as}
