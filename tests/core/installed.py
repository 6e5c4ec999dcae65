"""The CORE of this machine: where a standard installation has it, unless the environment says otherwise."""

import os
import subprocess
from pathlib import Path

from orchestrator.backends.core.driver_client import DRIVER

PYTHON = os.environ.get("ROVE_CORE_PYTHON", "/opt/core/venv/bin/python")
DAEMON = os.environ.get("ROVE_CORE_DAEMON", "localhost:50051")
_LOOK_S = 30.0


def lacking() -> str | None:
    """Why nothing can be tried out on it."""
    argv = [PYTHON, str(DRIVER), "--daemon", DAEMON, "--find", "nobody's"]
    if Path(PYTHON).exists():
        found = subprocess.run(argv, capture_output=True, timeout=_LOOK_S)
        if found.returncode == 0:
            return None
    return "needs CORE and its daemon"
