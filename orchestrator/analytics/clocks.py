"""Converts times that nodes recorded by their own clocks to the orchestrator's time, before anything else
uses them.

The time of a record was read from its node's clock. An application says which clock births of tuples were
read from.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from orchestrator.clocks.correction import Pieces
from orchestrator.results.inputs import LATEST_NS, RunInput


def clock_rows(runs: Sequence[RunInput]) -> list[dict[str, Any]]:
    """Returns rows of ``schemas.CLOCKS``, where ``of`` is a node."""
    return [row for run in runs for row in _rows(run.run, None, run.clocks)]


def birth_rows(runs: Sequence[RunInput]) -> list[dict[str, Any]]:
    """Returns rows of ``schemas.CLOCKS``, where ``of`` is the origin of an application's tuples."""
    return [
        row
        for run in runs
        if run.clocks
        for app in run.apps.values()
        for row in _rows(run.run, app.name, app.reader.births(run.clocks, app.plan))
    ]


def _rows(run: str, app: str | None, clocks: Mapping[str, Pieces]) -> Iterable[dict[str, Any]]:
    return (
        {"run": run, "app": app, "of": of, **piece._asdict()}
        for of, pieces in clocks.items()
        for piece in pieces
    )


def corrected(lines: DataFrame, clocks: DataFrame, births: DataFrame) -> DataFrame:
    """Returns ``lines`` of telemetry with all times in the orchestrator's; times without a clock in
    ``clocks`` stay.
    """
    born = F.coalesce(F.col("born_ns"), F.col("t_ns") - F.col("latency_ns"))
    known = _ahead(lines.withColumn("birth_ns", born), clocks, "node", "t_ns", "ahead_ns")
    known = _ahead(known, births, "origin", "birth_ns", "birth_ahead_ns")
    ahead, birth_ahead = F.col("ahead_ns"), F.col("birth_ahead_ns")
    return known.withColumns(
        {
            "t_ns": _bounded(F.col("t_ns") - ahead),
            "taken_ns": _bounded(F.col("taken_ns") - ahead),
            "born_ns": _bounded(F.col("born_ns") - birth_ahead),
            "latency_ns": F.col("latency_ns") - ahead + birth_ahead,
        }
    ).drop("birth_ns", "ahead_ns", "birth_ahead_ns")


def _bounded(time: Column) -> Column:
    """Limits times, so that differences of corrected times fit into 64 bits: a node that lies about its clock
    must not stop the analysis.
    """
    return F.when(time.isNotNull(), F.greatest(F.lit(0), F.least(F.lit(LATEST_NS), time)))


def _ahead(lines: DataFrame, clocks: DataFrame, whose: str, t_ns: str, name: str) -> DataFrame:
    """Adds a column that says how far the clock was ahead. Every time is in exactly one piece of a clock."""
    piece = {column: f"piece_{column}" for column in clocks.columns}
    time = F.col(t_ns)
    of_app = F.col(piece["app"]).isNull() | (F.col("app") == F.col(piece["app"]))
    same_clock = (F.col("run") == F.col(piece["run"])) & (F.col(whose) == F.col(piece["of"])) & of_app
    then = (time >= F.col(piece["from_ns"])) & (time < F.col(piece["until_ns"]))
    gained = F.rint(F.col(piece["slope"]) * (time - F.col(piece["at_ns"]))).cast("long")
    return (
        lines.join(F.broadcast(clocks.withColumnsRenamed(piece)), same_clock & then, "left")
        .withColumn(name, F.coalesce(F.col(piece["offset_ns"]) + gained, F.lit(0)))
        .drop(*piece.values())
    )
