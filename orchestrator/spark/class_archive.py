"""Keeps an archive of the Java classes that Spark loads, so that later JVMs map them instead of loading and
checking each of some 15,000 again.

The first analysis on a machine has its JVM write the archive when it ends, which makes a short one take about
twice as long. Java itself compares an archive with its own version and with Spark's files, and loads classes
as usual if anything has changed. None is written while the machine is busy with other things, because that
takes many seconds of a processor. A JVM that could not write one is not asked again for a day.
"""

import os
import secrets
import stat
import time
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from orchestrator.errors import RoveError
from orchestrator.spark.java import cache_directory

WRITING_S = 180.0
"""How long a JVM may take to write one and end."""
BUSY = 2.0
"""A machine with so many times more processes that want to run than processors is busy."""
FREE_BYTES = 2**30
"""Only with so much free disk is one written; it takes about a fifth of that."""
ARCHIVE, FRESH, FAILED = ".jsa", ".fresh", ".failed"
KEPT_S = {ARCHIVE: 30 * 24 * 3600.0, FRESH: 3600.0, FAILED: 24 * 3600.0}
"""How long files are kept: archives after their last use, what a killed session began to write, and the note
that a JVM could not write one.
"""


class ClassArchive(NamedTuple):
    """``configuration``: an empty directory for Spark's configuration. It is on the path of classes, which
    must be the same whenever the archive is used. ``fresh``: where the JVM is to write it; None if it exists.
    """

    file: Path
    configuration: Path
    fresh: Path | None

    @property
    def option(self) -> str:
        if self.fresh is None:
            return f'"-XX:SharedArchiveFile={self.file}"'
        return f'"-XX:ArchiveClassesAtExit={self.fresh}"'

    def settle(self, in_order: bool, in_time: bool) -> None:
        """Puts a new archive in place, if the JVM that wrote it ended in order. If it ended so without one,
        or took too long, notes that.
        """
        if self.fresh is None:
            return
        with suppress(OSError):
            if in_order and self.fresh.is_file():
                self.fresh.replace(self.file)
            elif in_order or not in_time:
                self.file.with_suffix(FAILED).touch()
        with suppress(OSError):
            self.fresh.unlink()


def class_archive(java: Path, spark_home: Path, write: bool) -> ClassArchive | None:
    """Returns the archive for this Java and this Spark; None if there is no place to keep one.

    ``write``: whether the session will load most of what sessions do, so that its JVM may write it.
    """
    try:
        directory = cache_directory() / "classes"
        directory.mkdir(mode=0o700, exist_ok=True)
        configuration = directory / "empty"
        configuration.mkdir(mode=0o700, exist_ok=True)
        if any(configuration.iterdir()):
            return None
        _remove_unused(directory)
        file = directory / f"{_key(java, spark_home)}{ARCHIVE}"
        if _is_ours(file):
            os.utime(file)
            return ClassArchive(file, configuration, None)
        space = os.statvfs(directory)
        is_room = space.f_bavail * space.f_frsize >= FREE_BYTES
        is_busy = os.getloadavg()[0] > BUSY * (os.cpu_count() or 1)
        if not write or not is_room or is_busy or file.with_suffix(FAILED).exists():
            return None
    except (OSError, RoveError):
        return None
    return ClassArchive(file, configuration, file.with_suffix(f".{secrets.token_hex(8)}{FRESH}"))


def _key(java: Path, spark_home: Path) -> str:
    jars = spark_home / "jars"
    marks = [f"{path} {path.stat().st_mtime_ns}" for path in (java.resolve(), jars)]
    return sha256("\n".join(marks).encode()).hexdigest()[:16]


def _is_ours(file: Path) -> bool:
    try:
        status = file.lstat()
    except FileNotFoundError:
        return False
    return stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid()


def _remove_unused(directory: Path) -> None:
    for path in directory.iterdir():
        if path.suffix in KEPT_S:
            with suppress(OSError):
                if time.time() - path.lstat().st_mtime > KEPT_S[path.suffix]:
                    path.unlink()
