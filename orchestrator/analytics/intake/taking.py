"""Brings what the store has of runs up to date: reads the runs that are new or changed, and no others."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from node_agent.apps.records import record_format
from orchestrator.analytics.intake import columns
from orchestrator.analytics.intake.files import Written
from orchestrator.analytics.intake.parts import TASK_BYTES, Part, tasks_for
from orchestrator.analytics.intake.task import read_parts
from orchestrator.analytics.log import RECORDS
from orchestrator.analytics.store import Fresh, TableStore
from orchestrator.results.inputs import RunInput

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Progress = Callable[[float], None]
"""Called with the fraction done, 0 to 1."""

GROUP_BYTES = 16 * TASK_BYTES
"""What is read between two entries into the store: what is entered need not be read again."""


def unread(store: TableStore, runs: Sequence[RunInput]) -> list[RunInput]:
    """Returns the runs that are new or have changed since they were read."""
    stamp, known = columns.stamp(record_format()), store.state.runs
    return [run for run in runs if run.run not in known or known[run.run].read != run.fingerprint(stamp)]


def take_in(
    store: TableStore, runs: Sequence[RunInput], progress: Progress, spark: "SparkSession | None" = None
) -> None:
    """Reads those of ``runs`` that are not read yet: in Spark if a session is given, else here."""
    stamp = columns.stamp(record_format())
    with store.writing() as staging:
        # Computed before reading, so that a file that changes meanwhile is read again the next time.
        fresh = {run.run: run.fingerprint(stamp) for run in runs}
        waiting = unread(store, runs)
        groups = _groups(waiting)
        for done, members in enumerate(groups):
            tasks = tasks_for(members)
            written = _in_spark(spark, tasks, staging) if spark else _here(tasks, staging)
            marks = {run.run: {"read": fresh[run.run], "made": ""} for run in members}
            files = [Fresh(each.of, staging / each.name, each.runs) for each in written]
            store.commit(RECORDS, files, marks, staging)
            progress((done + 1) / len(groups))


def _groups(runs: Sequence[RunInput]) -> list[list[RunInput]]:
    """Divides runs into groups of about ``GROUP_BYTES``."""
    groups: list[list[RunInput]] = []
    room = 0
    for run in runs:
        if room <= 0:
            groups.append([])
            room = GROUP_BYTES
        groups[-1].append(run)
        room -= run.bytes()
    return groups


def _here(tasks: Sequence[tuple[Part, ...]], staging: Path) -> list[Written]:
    return [each for parts in tasks for each in read_parts(parts, staging)]


def _in_spark(spark: "SparkSession", tasks: Sequence[tuple[Part, ...]], staging: Path) -> list[Written]:
    """Reads in Python processes of Spark's executors, which write to ``staging`` and tell only what they
    wrote."""
    place = str(staging)
    shared = spark.sparkContext.parallelize(tasks, max(len(tasks), 1))
    return shared.flatMap(lambda parts: read_parts(parts, Path(place))).collect()
