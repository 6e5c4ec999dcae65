"""Checks parameters of operators that name files, folders and galleries, relative to the experiment's file.

They must exist when the file is validated, and become absolute paths.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from pydantic import ValidationInfo

from node_agent.apps.dataflow.faces.params import NAMES
from orchestrator.spec.file_reference import FOLDER
from orchestrator.spec.problems import shown, unusable

Read = Callable[[str, ValidationInfo], str]

_WORDS = {"source": "file or folder"}
_RELATIVE = "paths are relative to this file"
_HINTS = {
    "gallery": f"make one with rove gallery add; {_RELATIVE}",
    "file": _RELATIVE,
    "folder": _RELATIVE,
    "source": _RELATIVE,
}


def what_it_names(annotation: Any) -> str | None:
    """Returns what the parameter's annotation says that it names."""
    for part in getattr(annotation, "__metadata__", ()):
        if isinstance(part, msgspec.Meta) and part.extra is not None:
            return part.extra.get(NAMES)
    return None


def path_reader(what: str) -> Read:
    """Returns a validator. An empty text means that nothing is named."""

    def read(value: str, info: ValidationInfo) -> str:
        if not value or (what == "source" and _is_elsewhere(value)):
            return value
        path = Path((info.context or {}).get(FOLDER, Path())).absolute() / value
        if problem := _problem(path, what):
            raise unusable(f"{shown(value)}: {problem}", "" if path.exists() else _HINTS[what])
        return str(path)

    return read


def _is_elsewhere(value: str) -> bool:
    """Says whether it is a device of the node or a stream's address, which cannot be checked here."""
    return value.startswith("/dev/") or "://" in value


def _problem(path: Path, what: str) -> str:
    if not path.exists():
        return f"no such {_WORDS.get(what, what)}"
    if what == "gallery":
        return _gallery_problem(path)
    if what == "file" and not path.is_file():
        return "this is no file"
    if what == "folder" and not path.is_dir():
        return "this is no folder"
    return ""


def _gallery_problem(path: Path) -> str:
    # Imported here: NumPy is needed only if a gallery is named.
    from node_agent.apps.dataflow.faces.gallery import BadGallery, load_gallery

    try:
        gallery = load_gallery(path)
    except BadGallery as error:
        return str(error)
    return "" if gallery.samples else "nobody is in this gallery"
