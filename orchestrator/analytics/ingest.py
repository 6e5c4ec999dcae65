"""Makes tables of what was read from runs, for all runs that are new or changed at once."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from threading import Lock, RLock
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa
from pyarrow import parquet
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from node_agent.apps.records import record_format
from orchestrator.analytics.as_read import source_of, write_as_read
from orchestrator.analytics.blame import blaming
from orchestrator.analytics.frames import frame_of, times_of, with_times
from orchestrator.analytics.intake import columns as kept
from orchestrator.analytics.layout import layout, tables_of
from orchestrator.analytics.log import RECORDS, TABLES
from orchestrator.analytics.schemas import struct
from orchestrator.analytics.store import Fresh, TableStore, file_url, judged, literal_path
from orchestrator.results.columns import Columns
from orchestrator.results.contribution import AsRead, Table
from orchestrator.results.inputs import RunInput
from orchestrator.spark.session import side_by_side
from orchestrator.spark.tuning import BULK_BYTES

Progress = Callable[[float], None]
"""Called with the fraction done, 0 to 1."""

MAKERS = 2
"""How many tables are made and written at the same time: while Spark plans one, it computes another."""
FILE_BYTES = 128 * 2**20
"""Telemetry for one file of a table."""


class Written(NamedTuple):
    """A table that is already in its files."""

    files: tuple[Path, ...]


Made: TypeAlias = "DataFrame | pa.Table | Written"


class TablesInTheMaking:
    """Implements ``results.spark.Ingest``, which functions that make tables get, in several threads."""

    def __init__(
        self, spark: SparkSession, store: TableStore, runs: Sequence[RunInput], staging: Path
    ) -> None:
        self._spark = spark
        self._store = store
        self._staging = staging
        self._runs = tuple(runs)
        self._names = [run.run for run in runs]
        size = sum(run.bytes() for run in runs)
        self.files = 1 if size < BULK_BYTES else max(2, size // FILE_BYTES)
        """How many files a table gets."""
        self._declared = {table.name: table for table in tables_of(runs)}
        self._making = {name: RLock() for name in self._declared}
        """A table that others need is made once, by the first who asks."""
        self._copying = Lock()
        """Rows as they were read are copied for one table at a time: each copy takes memory."""
        self._made: dict[str, Made] = {}
        self._frames: dict[str, DataFrame] = {}
        self._kept: list[DataFrame] = []

    @property
    def runs(self) -> Sequence[RunInput]:
        return self._runs

    def records(self, *kinds: str) -> DataFrame:
        found = self._read([*map(kept.of_record, kinds)], kept.record_columns(record_format(), *kinds))
        # All rows of a run in one partition: then nothing that groups or joins rows of a run has to move them
        # again, and a file of a table has whole runs.
        return found.coalesce(1) if self.files == 1 else found.repartition(self.files, "run")

    def _read(self, kinds: Sequence[str], schema: StructType) -> DataFrame:
        return self._store.frame(self._spark, RECORDS, kinds, self._names, schema)

    def frame(self, rows: Sequence[Mapping[str, Any]], columns: Columns) -> DataFrame:
        return frame_of(self._spark, rows, struct(columns))

    def timed(self, rows: DataFrame) -> DataFrame:
        runs = self.made("runs")
        assert isinstance(runs, pa.Table)  # the core makes it here
        times = times_of(runs)
        return with_times(rows, times, lambda: F.broadcast(self._spark.createDataFrame(times)))

    def truth(self, file: str) -> DataFrame:
        return self._read([kept.of_truth(file)], kept.truth_columns(file))

    def noted(self, what: str, columns: Columns) -> pa.Table:
        """Returns what the intake noted about files: boots of agents, and bad lines."""
        return self._store.rows(RECORDS, what, self._names, kept.arrow(columns))

    def made(self, name: str) -> Made:
        """Returns a table as it was made: in Spark, or here if it is small or as it was read."""
        with self._making[name]:
            if name not in self._made:
                self._made[name] = self._make(self._declared[name])
            return self._made[name]

    def _make(self, declared: Table) -> Made:
        with blaming(f"the table {declared.name!r} cannot be made"):
            made = declared.make(self)
        if isinstance(made, AsRead):
            with self._copying:
                return self._written(declared, made)
        if isinstance(made, DataFrame) and declared.shared:
            self._kept.append(made := made.persist())
        return made

    def _written(self, table: Table, made: AsRead) -> Written:
        place = self._staging / table.name
        place.mkdir()
        files = self._store.paths(RECORDS, source_of(made), self._names)
        return Written(tuple(write_as_read(files, self._names, table, made, place)))

    def table(self, name: str) -> DataFrame:
        with self._making[name]:
            made = self.made(name)
            if isinstance(made, DataFrame):
                return made
            if name not in self._frames:
                self._frames[name] = self._frame(made, struct(self._declared[name].columns))
            return self._frames[name]

    def _frame(self, made: "pa.Table | Written", schema: StructType) -> DataFrame:
        if isinstance(made, pa.Table):
            return self._spark.createDataFrame(made.cast(kept.arrow(schema)), schema)
        if made.files:
            return self._spark.read.schema(schema).parquet(*map(literal_path, made.files))
        return frame_of(self._spark, [], schema)

    @property
    def tables(self) -> Sequence[Table]:
        return tuple(self._declared.values())

    def forget(self) -> None:
        """Frees the memory of cached frames."""
        for frame in self._kept:
            frame.unpersist()


def make_tables(spark: SparkSession, store: TableStore, runs: Sequence[RunInput], progress: Progress) -> None:
    """Makes the tables of those of ``runs`` whose tables are not those of what was read."""
    with store.writing() as staging:
        known = store.state.runs
        prints = {run.run: run.fingerprint(layout(run)) for run in runs}
        stale = [run for run in runs if known[run.run].made != prints[run.run]]
        if stale:
            fresh = _prepare(spark, store, staging, stale, progress)
            marks = {run.run: {"made": prints[run.run], "judged": judged(run)} for run in stale}
            store.commit(TABLES, fresh, marks, staging)
    progress(1.0)


def _prepare(
    spark: SparkSession, store: TableStore, staging: Path, runs: Sequence[RunInput], progress: Progress
) -> list[Fresh]:
    making = TablesInTheMaking(spark, store, runs, staging)
    fresh: list[Fresh] = []

    def make(table: Table) -> list[Fresh]:
        return _write(making.made(table.name), table, staging, making.files)

    with side_by_side(MAKERS) as together:
        for done, written in enumerate([together.submit(make, table) for table in making.tables]):
            fresh += written.result()
            progress((done + 1) / (len(making.tables) + 1))
    making.forget()
    return fresh


def _write(found: Made, table: Table, staging: Path, files: int) -> list[Fresh]:
    """Writes a table that is not written yet, ordered by run, as about so many files."""
    place = staging / table.name
    if isinstance(found, Written):
        return _fresh(table, found.files)
    order = ("run", *table.order)
    if isinstance(found, DataFrame):
        types = ((each.name, each.dataType.simpleString()) for each in struct(table.columns))
        found = found.selectExpr(*(f"cast(`{name}` as {kind}) as `{name}`" for name, kind in types))
        if files == 1:  # Spark takes longer to write a small file than to give its rows
            found = found.toArrow()
    if isinstance(found, DataFrame):
        ordered = found.coalesce(files).sortWithinPartitions(*order)
        ordered.write.option("compression", "zstd").parquet(file_url(place))
    else:
        place.mkdir()
        plain = found.select(list(table.columns)).cast(kept.arrow(table.columns))
        ordered = plain.sort_by([(name, "ascending") for name in order])
        parquet.write_table(ordered, place / "part.parquet", compression="zstd")
    return _fresh(table, sorted(place.glob("*.parquet")))


def _fresh(table: Table, files: Sequence[Path]) -> list[Fresh]:
    found = []
    for path in files:
        runs = parquet.read_table(path, columns=["run"], partitioning=None)["run"].unique().to_pylist()
        if runs:
            found.append(Fresh(table.name, path, tuple(runs)))
    return found
