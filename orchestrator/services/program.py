"""A program as a value, independent of where it runs: on this machine or on any node."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

SYSTEM_PATH = "/usr/local/sbin:/usr/sbin:/sbin"
"""Daemons are installed where a user's PATH need not lead."""


@dataclass(frozen=True)
class Argv:
    """A program to execute, by its name or its path."""

    argv: tuple[str, ...]

    def found_here(self) -> "Argv":
        """With this machine's path of it, if there is one."""
        name, *words = self.argv
        return Argv((executable(name) or name, *words))


@dataclass(frozen=True)
class Entry:
    """``module:function`` to call with ``arguments``; what it returns is the exit status, None means 0."""

    entry: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Module:
    """One of our daemons: ``python -m package --config FILE``, or ``package.process:run`` where it is forked
    from a process that has loaded it."""

    package: str
    config: str

    @property
    def loaded(self) -> str:
        """What a process imports that runs it."""
        return f"{self.package}.process"

    def entry(self) -> Entry:
        return Entry(f"{self.loaded}:run", {"config": self.config})

    @property
    def words(self) -> tuple[str, str]:
        """Of its command line."""
        return "--config", self.config


def executable(name: str) -> str | None:
    """Where this machine has a program."""
    return shutil.which(name) or shutil.which(name, path=SYSTEM_PATH)
