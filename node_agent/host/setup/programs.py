"""Runs the system's programs with a time limit, and turns their errors into one sentence."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterable

from node_agent.host.setup.steps import Command, SetupError, Step

PACKAGES = {"ip": "iproute2", "tc": "iproute2", "iw": "iw", "nft": "nftables", "sysctl": "procps"}
_TIMEOUT_S = 15.0
_PLACES = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])
_NOT_IN_THE_KERNEL = re.compile(r"unknown|not found|not supported|No such file", re.IGNORECASE)


def refuse_missing(programs: Iterable[str]) -> None:
    missing = [program for program in dict.fromkeys(programs) if find(program) is None]
    if missing:
        packages = " ".join(dict.fromkeys(PACKAGES[program] for program in missing))
        be = "is" if len(missing) == 1 else "are"
        raise SetupError(f"{' and '.join(missing)} {be} not installed here: apt-get install {packages}")


def find(program: str) -> str | None:
    return shutil.which(program, path=_PLACES)


def run(command: Command) -> "subprocess.CompletedProcess[str]":
    """Runs in a session of its own, so that a signal to us does not end the program."""
    program = find(command.argv[0])
    if program is None:
        raise SetupError(f"{command.argv[0]} is not installed here")
    environment = {**os.environ, "PATH": _PLACES, "LC_ALL": "C"}
    try:
        return subprocess.run(
            [program, *command.argv[1:]],
            input=command.input,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIMEOUT_S,
            env=environment,
            start_new_session=True,
        )
    except subprocess.TimeoutExpired:
        raise SetupError(f"{command}: no answer within {_TIMEOUT_S:g} s") from None
    except OSError as error:
        raise SetupError(f"{command}: {error.strerror}") from None


def output_of(*argv: str) -> str:
    command = Command(argv)
    done = run(command)
    if done.returncode:
        raise SetupError(complaint(Step(command), done.stderr))
    return done.stdout


def complaint(step: Step, said: str) -> str:
    if step.lacking and _NOT_IN_THE_KERNEL.search(said):
        return step.lacking
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return f"{step.do}: {lines[0] if lines else 'failed'}"
