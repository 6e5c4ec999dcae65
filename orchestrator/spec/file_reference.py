"""Files that a section names: relative to the file it stands in, read when that is validated."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationInfo

from orchestrator.spec.problems import shown, unusable
from orchestrator.spec.source_file import MOST_BYTES, Unreadable, read_bytes

FOLDER = "folder"
"""The key of the validation context for what relative references are relative to."""


@dataclass(frozen=True)
class FileReference:
    """Two files of the same content are the same value, wherever they lie: a copy stands for its original."""

    path: Path = field(compare=False)
    """Absolute, so that the value means the same to everybody on this machine."""
    digest: str

    def contents(self) -> dict[str, bytes]:
        """By name: the file, and what belongs to it."""
        return {self.path.name: read_bytes(self.path, MOST_BYTES)}

    def written(self, file: str) -> str:
        """How a section names it that lies beside ``file``."""
        return file


R = TypeVar("R", bound=FileReference)


def reader(kind: type[R], example: str) -> Callable[[Any, ValidationInfo], R]:
    """A validator that takes a name for the file of that name."""

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
