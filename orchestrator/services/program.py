"""A program as a value, independent of where it runs: on this machine or on any node."""

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SYSTEM_PATH = "/usr/local/sbin:/usr/sbin:/sbin"
"""Daemons are installed where a user's PATH need not lead."""
LIBRARY_FOLDERS = ("/lib", "/usr/lib", "/lib64", "/usr/lib64", "/lib/*-linux-*", "/usr/lib/*-linux-*")
"""Where the dynamic loader looks for a plug-in, besides LD_LIBRARY_PATH. Its cache knows lib….so only."""


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


def library(name: str) -> str | None:
    """Where this machine has a library that programs load by its name."""
    named = [Path(folder, name) for folder in os.environ.get("LD_LIBRARY_PATH", "").split(":") if folder]
    usual = [file for folder in LIBRARY_FOLDERS for file in Path("/").glob(f"{folder[1:]}/{name}")]
    return next((str(file) for file in (*named, *usual) if file.is_file()), None)
