"""Asks git whether a cell was run by a commit or by one of its descendants."""

import re
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path

from orchestrator.errors import BadInput

_HASH = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_GIT_S = 10.0


def since(commit: str, root: Path) -> Callable[[str | None], bool]:
    """Returns a function that says whether a commit is ``commit`` or a descendant of it; what is no commit of
    the repository in ``root`` is none. Raises BadInput if ``commit`` is no commit there.
    """
    if _git(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{commit}^{{commit}}") != 0:
        raise BadInput(f"--since {commit}: there is no such commit here; git log lists them")

    @cache
    def descends(other: str | None) -> bool:
        # The file of cells may say anything.
        if other is None or not _HASH.fullmatch(other):
            return False
        return _git(root, "merge-base", "--is-ancestor", "--end-of-options", commit, other) == 0

    return descends


def _git(root: Path, *arguments: str) -> int:
    try:
        ended = subprocess.run(
            ["git", "-C", str(root), *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_GIT_S,
            check=False,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise BadInput(f"--since needs git: {error}") from error
    return ended.returncode
