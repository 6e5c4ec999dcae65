"""The one place that turns a name from another machine into a path on this one."""

from pathlib import Path, PurePosixPath

from orchestrator.errors import RoveError
from orchestrator.foreign_text import one_line

MOST_PARTS = 16
LONGEST = 1024
LONGEST_PART = 200


class UnsafeName(RoveError):
    """The name could lead outside the directory that it is meant for, or disturb who reads it."""


def path_inside(directory: Path, name: str) -> Path:
    """The path of ``name`` below ``directory``; no file need be there. Raises UnsafeName.

    ``name`` is relative, in POSIX form, of printable characters, without empty, ``.`` or ``..`` parts. No
    symbolic link that exists on the way may lead out of ``directory``.
    """
    if problem := _problem(name):
        raise UnsafeName(f"the name {_shown(name)} cannot be used here: {problem}")
    path = directory.joinpath(*PurePosixPath(name).parts)
    root = directory.resolve()
    if path.is_symlink() or not path.resolve().is_relative_to(root):
        raise UnsafeName(f"the name {_shown(name)} cannot be used here: it leads out of {directory}")
    return path


def _shown(name: str) -> str:
    return f"'{one_line(name, 100)}'"


def _problem(name: str) -> str | None:
    parts = name.split("/")
    if not name or len(name) > LONGEST or len(parts) > MOST_PARTS or max(map(len, parts)) > LONGEST_PART:
        return "it is empty or too long"
    if not name.isprintable() or "\\" in name:
        return "it has characters that do not print"
    if any(part in ("", ".", "..") for part in parts):
        return "it is not a plain relative path"
    return None
