"""Checks that executors see the same files as this machine, before anything is read or written there.

Spark itself does not notice: each executor would write its part of a table to its own disk.
"""

import secrets
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.errors import RoveError
from orchestrator.spark.cluster import executors
from orchestrator.spark.plain_results import collect_bytes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_OURS = "driver"


def require_shared(spark: "SparkSession", folder: Path) -> None:
    """Raises RoveError if an executor does not see ``folder``, or this machine not what executors write."""
    token = secrets.token_hex(16)
    probe = folder.resolve() / f".rove-probe-{token[:8]}"
    probe.mkdir()
    try:
        (probe / _OURS).write_text(token)
        tasks = max(2, 2 * executors(spark))
        collect_bytes(spark, [(str(probe), number) for number in range(tasks)], _copied)
        seen = [number for number in range(tasks) if _content(probe / str(number)) == token]
    finally:
        shutil.rmtree(probe, ignore_errors=True)
    if len(seen) < tasks:
        raise RoveError(
            f"executors do not share {folder.resolve()} with this machine: put the runs on a file system that"
            " all of them mount at this path, or analyse without --master (docs/sweeps.md)"
        )


def _copied(places: Iterable[tuple[str, int]]) -> Iterator[bytes]:
    """On an executor: copies our file, if it is there."""
    for place, number in places:
        content = _content(Path(place) / _OURS)
        if content:
            Path(place, str(number)).write_text(content)
        yield b""


def _content(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
