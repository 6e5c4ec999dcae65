"""Turns segments and ground truth of many runs into tables, in one pass over all runs that are new or
changed.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from node_agent.apps.records import record_format
from orchestrator.analytics.blame import blaming
from orchestrator.analytics.frames import frame_of
from orchestrator.analytics.layout import layout, tables_of
from orchestrator.analytics.lines import read_lines, read_truth
from orchestrator.analytics.schemas import struct
from orchestrator.analytics.store import TableStore
from orchestrator.results.columns import Columns
from orchestrator.results.contribution import Table
from orchestrator.results.inputs import RunInput
from orchestrator.spark.session import BULK_BYTES, side_by_side

Progress = Callable[[float], None]
"""Called with the fraction done, 0 to 1."""

KEY = ("run", "node", "boot", "seq")

WRITERS = 2
"""How many tables are written at the same time: while Spark plans one, it computes another."""


class TablesInTheMaking:
    """Implements ``results.spark.Ingest``, which functions that make tables get."""

    def __init__(self, spark: SparkSession, runs: Sequence[RunInput]) -> None:
        self._spark = spark
        self._runs = tuple(runs)
        self._declared = {table.name: table for table in tables_of(runs)}
        self._made: dict[str, DataFrame] = {}
        self._kept: list[DataFrame] = []

    @property
    def runs(self) -> Sequence[RunInput]:
        return self._runs

    @cached_property
    def lines(self) -> DataFrame:
        """Returns every line, including those that are ``corrupt`` or ``is_refused``."""
        return self._keep(read_lines(self._spark, self._runs))

    @cached_property
    def records(self) -> DataFrame:
        known = F.col("kind").isin(*record_format().needed)
        readable = self.lines.where(~F.col("corrupt") & ~F.col("is_refused") & known)
        # Duplicates are rare, and removing them means sorting everything, so look for them first.
        twice = not self.table("nodes").where("duplicates > 0").isEmpty()
        return _each_once(readable) if twice else readable

    def frame(self, rows: Sequence[Mapping[str, Any]], columns: Columns) -> DataFrame:
        return frame_of(self._spark, rows, struct(columns))

    def truth(self, file: str, columns: Columns) -> DataFrame:
        return read_truth(self._spark, self._runs, file, struct(columns))

    def table(self, name: str) -> DataFrame:
        if name not in self._made:
            declared = self._declared[name]
            with blaming(f"the table {name!r} cannot be made"):
                made = declared.make(self)
            self._made[name] = self._keep(made) if declared.shared else made
        return self._made[name]

    def tables(self) -> list[tuple[Table, DataFrame]]:
        """Returns all tables."""
        return [(declared, self.table(name)) for name, declared in self._declared.items()]

    def _keep(self, frame: DataFrame) -> DataFrame:
        self._kept.append(frame.persist())
        return self._kept[-1]

    def forget(self) -> None:
        """Frees the memory of cached frames."""
        for frame in self._kept:
            frame.unpersist()


def ingest(spark: SparkSession, store: TableStore, runs: Sequence[RunInput], progress: Progress) -> None:
    """Brings the tables of ``runs`` up to date; does not read what has not changed since the last time."""
    with store.writing() as staging:
        # Computed before reading, so that a file that changes meanwhile is read again the next time.
        fingerprints = {run.run: run.fingerprint(layout(run)) for run in runs}
        stale = [run for run in runs if not store.holds(run.run, fingerprints[run.run])]
        if stale:
            _prepare(spark, staging, stale, progress)
        for run in stale:
            store.commit(staging, run, fingerprints[run.run])
    progress(1.0)


def _prepare(spark: SparkSession, staging: Path, runs: Sequence[RunInput], progress: Progress) -> None:
    making = TablesInTheMaking(spark, runs)
    made = making.tables()
    small = sum(run.bytes() for run in runs) < BULK_BYTES
    with side_by_side(WRITERS) as together:
        writes = [together.submit(_write, frame, table, staging, small) for table, frame in made]
        for done, write in enumerate(writes):
            write.result()
            progress((done + 1) / (len(made) + 1))
    making.forget()


def _each_once(readable: DataFrame) -> DataFrame:
    alike = Window.partitionBy(*KEY).orderBy("t_ns", "kind")
    return readable.withColumn("copy", F.row_number().over(alike)).where("copy = 1").drop("copy")


def _write(frame: DataFrame, table: Table, staging: Path, small: bool) -> None:
    columns = [F.col(field.name).cast(field.dataType) for field in struct(table.columns)]
    chosen = frame.select(*columns)
    # One file a run in both cases; for little data, a single task writes faster.
    together = chosen.coalesce(1) if small else chosen.repartition("run")
    ordered = together.sortWithinPartitions("run", *table.order)
    ordered.write.partitionBy("run").option("compression", "zstd").parquet(str(staging / table.name))
