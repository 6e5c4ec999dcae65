"""Finds and runs SUMO's programs: those of the Python package ``eclipse-sumo``, else those on the path."""

import importlib.util
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from orchestrator.errors import BadInput
from orchestrator.foreign_text import one_line

TIMEOUT_S = 600.0
INSTALL = "install it: pip install 'rove-testbed[traffic]'"
LONGEST_ERROR = 300


class NoSumo(BadInput):
    """A program of SUMO is not installed."""

    def __init__(self, program: str) -> None:
        self.message = f"needs SUMO, and its program {program} was not found"
        super().__init__(f"mobility model sumo {self.message}; {INSTALL}")


def find(program: str) -> str:
    """Returns the program's path. Raises NoSumo."""
    package = importlib.util.find_spec("sumo")
    if package is not None and package.origin is not None:
        found = Path(package.origin).parent / "bin" / program
        if found.exists():
            return str(found)
    on_path = shutil.which(program)
    if on_path is None:
        raise NoSumo(program)
    return on_path


def run(program: str, arguments: Sequence[str], folder: Path) -> None:
    """Runs the program in ``folder``. Raises BadInput with its last words if it fails."""
    command = [find(program), *arguments]
    try:
        done = subprocess.run(
            command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT_S
        )
    except subprocess.TimeoutExpired:
        raise BadInput(f"{program} was not done within {TIMEOUT_S:g} s") from None
    except OSError as error:
        raise BadInput(f"cannot run {program}: {error.strerror}") from error
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").replace("Quitting (on error).", "")
        raise BadInput(f"{program} failed: {one_line(said.strip(), LONGEST_ERROR)}")
