"""What the figures of a report are drawn from: small series per run, computed in Spark over its tables.

Times are in seconds since the first record of the run.
"""

from collections.abc import Sequence
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from orchestrator.analytics.inputs import RunInput
from orchestrator.analytics.store import TableStore

MOST_POSITIONS = 150
"""Per node; more samples than that are thinned out."""

MOST_LINKS = 300
"""Those over which most was sent."""

Series = dict[str, Any]


def draw_from(spark: SparkSession, store: TableStore, inputs: Sequence[RunInput]) -> dict[str, Series]:
    names = [run.run for run in inputs]
    clocks = store.read(spark, "runs", names).select(
        "run", "measure_from_ns", "measure_until_ns", F.col("first_ns").alias("zero_ns"), "ended_ns"
    )
    series: dict[str, Series] = {}
    for row in clocks.collect():
        zero = row["zero_ns"] or 0
        series[row["run"]] = {
            "window_s": [_seconds_after(row[name], zero) for name in ("measure_from_ns", "measure_until_ns")],
            "ended_s": _seconds_after(row["ended_ns"], zero),
            "deliveries": [],
            "routes": [],
            "connectivity": [],
            "positions": {},
            "links": [],
        }
    clocks = F.broadcast(clocks)
    for row in _deliveries(store.read(spark, "tuples", names).join(clocks, "run")).collect():
        series[row["run"]]["deliveries"].append([row["second"], row["tuples"], row["bytes"]])
    for row in _routes(store.read(spark, "switches", names).join(clocks, "run")).collect():
        series[row["run"]]["routes"].append([row["t"], row["replica"], row["downstream"], row["new"]])
    for row in _connectivity(store.read(spark, "connectivity", names).join(clocks, "run")).collect():
        series[row["run"]]["connectivity"].append([row["from"], row["until"], row["connected"]])
    for row in _positions(store.read(spark, "positions", names).join(clocks, "run")).collect():
        series[row["run"]]["positions"].setdefault(row["node"], []).append([row["x"], row["y"]])
    for row in _links(store.read(spark, "deliveries", names)).collect():
        series[row["run"]]["links"].append([row["attempted"], row["delivered"], row["expected"]])
    return series


def _seconds_after(t_ns: int | None, zero_ns: int) -> float | None:
    return None if t_ns is None else round((t_ns - zero_ns) / 1e9, 3)


def _seconds(t_ns: str) -> Column:
    return F.round((F.col(t_ns) - F.col("zero_ns")) / 1e9, 3)


def _whole_second(t_ns: str) -> Column:
    return F.floor((F.col(t_ns) - F.col("zero_ns")) / 1e9)


def _deliveries(tuples: DataFrame) -> DataFrame:
    return (
        tuples.where("delivered")
        .groupBy("run", _whole_second("delivered_ns").alias("second"))
        .agg(F.count("*").alias("tuples"), F.sum("delivered_size").alias("bytes"))
        .orderBy("run", "second")
    )


def _routes(switches: DataFrame) -> DataFrame:
    chosen = switches.select("run", _seconds("t_ns").alias("t"), "replica", "downstream", "new", "t_ns")
    return chosen.orderBy("run", "t_ns", "replica", "downstream")


def _connectivity(connectivity: DataFrame) -> DataFrame:
    times = (_seconds("from_ns").alias("from"), _seconds("until_ns").alias("until"))
    return connectivity.select("run", *times, "connected", "from_ns").orderBy("run", "from_ns")


def _positions(positions: DataFrame) -> DataFrame:
    step = F.greatest(F.ceil((F.col("ended_ns") - F.col("zero_ns")) / (MOST_POSITIONS * 1e9)), F.lit(1))
    return (
        positions.where(_whole_second("t_ns") % step == 0)
        .select("run", "node", "t_ns", F.round("x", 1).alias("x"), F.round("y", 1).alias("y"))
        .orderBy("run", "node", "t_ns")
    )


def _links(deliveries: DataFrame) -> DataFrame:
    """Per directed link over the whole run; what was expected is weighted by what was sent."""
    used = deliveries.groupBy("run", "src", "dst").agg(
        F.sum("attempted").alias("attempted"),
        F.sum("delivered").alias("delivered"),
        F.round(F.sum(F.col("attempted") * F.col("expected")) / F.sum("attempted"), 4).alias("expected"),
    )
    busiest = Window.partitionBy("run").orderBy(F.desc("attempted"), "src", "dst")
    ranked = used.withColumn("rank", F.row_number().over(busiest)).where(F.col("rank") <= MOST_LINKS)
    return ranked.orderBy("run", "rank")
