"""Brings what the store has of runs up to date: reads the runs that are new or changed, and no others."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from node_agent.apps.records import record_format
from node_agent.model.checked import Checked, Refused
from orchestrator.analytics.intake import columns, rules
from orchestrator.analytics.intake.files import Written
from orchestrator.analytics.intake.parts import TASK_BYTES, Part, tasks_for
from orchestrator.analytics.intake.task import read_parts
from orchestrator.analytics.log import RECORDS
from orchestrator.analytics.store import Fresh, TableStore
from orchestrator.errors import RoveError
from orchestrator.foreign_names import UnsafeName, path_inside
from orchestrator.results.inputs import RunInput
from orchestrator.results.truth import TRUTH
from orchestrator.spark.plain_results import collect_bytes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Progress = Callable[[float], None]
"""Called with the fraction done, 0 to 1."""

GROUP_BYTES = 16 * TASK_BYTES
"""What is read between two entries into the store: what is entered need not be read again."""
MOST_TOLD = 16 * 2**20
"""Bytes in which a task says what it has written."""

_told: Checked[list[Written]] = Checked(list[Written], MOST_TOLD)


def unread(store: TableStore, runs: Sequence[RunInput]) -> list[RunInput]:
    """Returns the runs that are new or have changed since they were read."""
    stamp, known = rules.stamp(), store.state.runs
    return [run for run in runs if run.run not in known or known[run.run].read != run.fingerprint(stamp)]


def take_in(
    store: TableStore, runs: Sequence[RunInput], progress: Progress, spark: "SparkSession | None" = None
) -> None:
    """Reads those of ``runs`` that are not read yet: in Spark if a session is given, else here."""
    stamp = rules.stamp()
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
    """Reads in Python processes of Spark's executors, which write to ``staging`` and say only what they
    wrote."""
    if not tasks:
        return []
    told = collect_bytes(spark, [(parts, str(staging)) for parts in tasks], _on_executor)
    runs = {Path(part.directory).name for parts in tasks for part in parts}
    return [each for piece in told for each in written_by_executor(piece, staging, runs)]


def _on_executor(orders: Iterable[tuple[tuple[Part, ...], str]]) -> Iterator[bytes]:
    for parts, place in orders:
        yield msgspec.json.encode(read_parts(parts, Path(place)))


def written_by_executor(told: bytes, staging: Path, runs: set[str]) -> list[Written]:
    """Reads what a task says that it has written. Raises RoveError.

    It comes from another process, perhaps of another machine: it may name files in ``staging``, kinds of rows
    that exist and runs that the task was to read, and nothing else.
    """
    kinds = {columns.BOOT, columns.BAD, *map(columns.of_truth, TRUTH)}
    kinds |= set(map(columns.of_record, record_format().needed))
    try:
        found = _told.decode(told)
        for each in found:
            if not (
                path_inside(staging, each.name).is_file() and each.of in kinds and runs.issuperset(each.runs)
            ):
                raise Refused("malformed", f"it names {each.of!r} in {each.name!r}")
    except (Refused, UnsafeName) as error:
        raise RoveError(
            f"an executor said what it has read in a way that cannot be believed ({error}): nothing of it was"
            " kept; has it the same version of Rove?"
        ) from error
    return found
