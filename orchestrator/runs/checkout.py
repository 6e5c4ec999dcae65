"""Finds out which commit of its own source Rove runs from, where it runs from a git checkout.

The commit is read from git's files. Only the program ``git`` can tell whether files were changed since;
without it, that is not known.
"""

import re
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parents[2]
GIT_S = 5.0
"""How long git may take to look for changed files."""
_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_MOST_BYTES = 1 << 20
_REF = "ref: "


@cache  # the code that runs is that of the first look
def checkout(root: Path = HERE) -> dict[str, Any] | None:
    """Returns ``commit``, and whether tracked files differ from it (``dirty``; None: not known). None if
    ``root`` is no git checkout.
    """
    commit = commit_of(root)
    return None if commit is None else {"commit": commit, "dirty": _is_dirty(root)}


def commit_of(root: Path) -> str | None:
    """Returns the commit that is checked out in ``root``; None if it has no ``.git`` that can be read."""
    try:
        own = _git_directory(root / ".git")
        head = _text(own / "HEAD")
        if head.startswith(_REF):
            head = _resolved(own, head.removeprefix(_REF))
    except (OSError, ValueError):
        return None
    return head if _COMMIT.fullmatch(head) else None


def _git_directory(place: Path) -> Path:
    """A worktree has a file here that names its directory."""
    return place if place.is_dir() else place.parent / _text(place).removeprefix("gitdir: ")


def _resolved(own: Path, ref: str) -> str:
    """Branches of a worktree are those of the repository that it belongs to."""
    shared = own / "commondir"
    repository = own / _text(shared) if shared.is_file() else own
    if ".." in Path(ref).parts or Path(ref).is_absolute():
        raise ValueError(ref)
    if (repository / ref).is_file():
        return _text(repository / ref)
    for line in _text(repository / "packed-refs").splitlines():
        commit, _, name = line.partition(" ")
        if name == ref:
            return commit
    raise ValueError(ref)


def _text(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(_MOST_BYTES).decode().strip()


def _is_dirty(root: Path) -> bool | None:
    command = ["git", "--no-optional-locks", "-c", "core.fsmonitor=false", "-C", str(root)]
    try:
        found = subprocess.run(
            [*command, "status", "--porcelain", "--untracked-files=no"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=GIT_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return bool(found.stdout.strip())
