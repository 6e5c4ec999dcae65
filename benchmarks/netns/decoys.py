"""Makes objects that resemble a run's: teardown must leave them alone. For benchmarks and tests."""

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from orchestrator.backends.netns import names, syscalls
from orchestrator.backends.netns.marks import CONTROL, Mark

LIFE_S = 600


def lookalikes(*marks: Mark) -> list[str]:
    """Returns names of namespaces that resemble those of the runs. The last two of each run are names that
    the run would use itself, for namespaces without its mark inside.
    """
    found = [f"rove-foo{os.getpid()}"]
    for mark in marks:
        group = mark.group
        found += [
            group,
            f"{group}-",
            f"{group}x-n01",
            f"{group[:-1]}-n01",
            f"{group.upper()}-n01",
            f"x{group}-n01",
            f"{group}-n01.bak",
            f"{group}.controls",
            f"{group}{CONTROL}-n01",
            mark.namespace("n98"),
            mark.namespace("n99"),
        ]
    return found


@contextmanager
def foreign_namespace(name: str) -> Iterator[Path]:
    """Makes a named namespace that contains nothing of ours."""
    path = names.HOST_NAMES / name
    names.prepare(names.HOST_NAMES)

    def make() -> None:
        syscalls.unshare(syscalls.CLONE_NEWNET)
        names.name_own_namespace(path)

    syscalls.in_own_thread(make)
    try:
        yield path
    finally:
        names.release(path)


@contextmanager
def sleeper(environment: Mapping[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(["sleep", str(LIFE_S)], env=environment)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
