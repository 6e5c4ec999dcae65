"""Computes the metrics and series of each run and of each of its applications from tables, in one Spark job.

Equal telemetry gives equal values, bit for bit.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from threading import RLock
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from orchestrator.analytics.blame import blaming
from orchestrator.analytics.frames import frame_of, times_of, with_times
from orchestrator.analytics.gather import gather
from orchestrator.analytics.intake.columns import arrow
from orchestrator.analytics.layout import contributed
from orchestrator.analytics.log import TABLES
from orchestrator.analytics.schemas import struct
from orchestrator.analytics.store import TableStore
from orchestrator.errors import RoveError
from orchestrator.results import registry
from orchestrator.results.columns import Columns
from orchestrator.results.contribution import Figures, Rows
from orchestrator.results.inputs import AppInput, RunInput
from orchestrator.results.spark import Choose, Subject
from orchestrator.spark.session import side_by_side
from orchestrator.spark.tuning import BULK_BYTES

PLANNERS = 2
"""How many values are planned at the same time."""

Document = dict[str, Any]


class TablesMade:
    """Implements ``results.spark.Reading``, which functions that compute values get. Several threads may use
    it.
    """

    def __init__(self, spark: SparkSession, store: TableStore, runs: Sequence[RunInput]) -> None:
        self._spark = spark
        self._store = store
        self._runs = tuple(runs)
        self._tables: dict[str, DataFrame] = {}
        self._reading = RLock()
        self.is_little = sum(run.bytes() for run in runs) < BULK_BYTES

    @property
    def runs(self) -> Sequence[RunInput]:
        return self._runs

    def frame(self, rows: Sequence[Mapping[str, Any]], columns: Columns) -> DataFrame:
        return frame_of(self._spark, rows, struct(columns))

    def table(self, name: str) -> DataFrame:
        with self._reading:
            if name not in self._tables:
                found = self._store.read(self._spark, name, [run.run for run in self._runs])
                # In one partition, nothing has to move.
                self._tables[name] = found.coalesce(1) if self.is_little else found
            return self._tables[name]

    def timed(self, rows: DataFrame) -> DataFrame:
        return with_times(rows, self.times, lambda: self.windows)

    def columns(self, name: str, choose: Choose | None = None, only: Sequence[str] | None = None) -> pa.Table:
        schema = arrow(registry.tables()[name].columns)
        if only is not None:
            schema = pa.schema([schema.field(each) for each in only])
        return self._store.rows(TABLES, name, [run.run for run in self._runs], schema, choose)

    @cached_property
    def times(self) -> pa.Table:
        return times_of(self.columns("runs"))

    @cached_property
    def windows(self) -> DataFrame:
        return F.broadcast(self._spark.createDataFrame(self.times))


def compute(
    spark: SparkSession, store: TableStore, runs: Sequence[RunInput]
) -> Iterator[tuple[RunInput, Document]]:
    """Yields each run with its ``metrics`` and ``series``, and those of each of its ``apps``."""
    reading = TablesMade(spark, store, runs)
    wanted = list(dict.fromkeys(figures for run in runs for _, found in _parts(run) for figures in found))
    frames: dict[str, DataFrame | pa.Table] = {}
    with side_by_side(PLANNERS) as together:
        planned = together.map(lambda figures: _planned(figures, reading), wanted)
        for number, of_figures in enumerate(planned):
            frames |= {f"{number} {name}": frame for name, frame in of_figures.items()}
    with _few_partitions(spark, 1 if reading.is_little else spark.sparkContext.defaultParallelism):
        gathered = gather(frames)
    clocks = {row["run"]: row for row in reading.times.to_pylist()}
    for run in runs:
        yield run, _result(run, wanted, gathered.rows(run.run), clocks[run.run])


def _result(
    run: RunInput, wanted: Sequence[Figures], rows: Mapping[str, Rows], times: Mapping[str, Any]
) -> Document:
    of_part = _by_app(rows)
    parts: dict[str, Document] = {}
    for app, found in _parts(run):
        of_apps = {} if app else {name: part["metrics"] for name, part in parts.items()}
        subject = Subject(run, app, times["zero_ns"] or 0, times["ended_ns"], of_apps)
        own = of_part.get(app.name if app else "", {})
        parts[app.name if app else ""] = _part(
            subject, found, {figures: own.get(wanted.index(figures), {}) for figures in found}
        )
    return {
        **parts.pop(""),
        "apps": {name: {"kind": run.apps[name].kind, **part} for name, part in parts.items()},
    }


def _planned(figures: Figures, reading: TablesMade) -> Mapping[str, "DataFrame | pa.Table"]:
    with blaming(f"{_named(figures)} cannot be computed"):
        return figures.frames(reading)


@contextmanager
def _few_partitions(spark: SparkSession, partitions: int) -> Iterator[None]:
    """Results are small: one plan for all of them takes less time than planning each step anew."""
    wanted = {
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.shuffle.partitions": str(partitions),
    }
    before = {name: str(spark.conf.get(name)) for name in wanted}
    for name, value in wanted.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


def _parts(run: RunInput) -> Iterator[tuple[AppInput | None, list[Figures]]]:
    """Yields the applications, then None for the run itself."""
    for app in (*run.apps.values(), None):
        yield app, [figures for each in contributed(app) for figures in each.figures]


def _named(figures: Figures) -> str:
    """Returns what an error calls these figures."""
    return ", ".join([*(metric.name for metric in figures.metrics), *figures.series][:3])


def _by_app(rows: Mapping[str, Rows]) -> dict[str, dict[int, dict[str, Rows]]]:
    """Groups a run's rows by application, then by the number of the figures and the name of the frame."""
    found: dict[str, dict[int, dict[str, Rows]]] = {}
    for key, members in rows.items():
        number, _, name = key.partition(" ")
        for row in members:
            of_app = found.setdefault(row.get("app", ""), {})
            of_app.setdefault(int(number), {}).setdefault(name, []).append(row)
    return found


def _part(
    subject: Subject, contributed: Sequence[Figures], rows: Mapping[Figures, Mapping[str, Rows]]
) -> Document:
    metrics: Document = {}
    series: Document = {}
    for figures in contributed:
        with blaming(f"{_named(figures)} cannot be computed"):
            values = dict(figures.values(subject, _Found(rows[figures])))
        declared = {metric.name: metric.optional for metric in figures.metrics}
        wrong = [name for name in values if name not in declared and name not in figures.series]
        lacking = [name for name, optional in declared.items() if not optional and name not in values]
        lacking += [name for name in figures.series if name not in values]
        if wrong or lacking:
            what = f"{wrong[0]} is computed but not declared" if wrong else f"{lacking[0]} is not computed"
            raise RoveError(f"{_named(figures)}: {what}")
        for name, value in values.items():
            (metrics if name in declared else series)[name] = value
    return {"metrics": metrics, "series": series}


class _Found(dict[str, Rows]):
    """Rows by frame. A frame without rows for this part gives an empty list."""

    def __missing__(self, name: str) -> Rows:
        return []
