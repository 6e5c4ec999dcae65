"""Computes in Spark what ``values`` needs from the tables of the core."""

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from orchestrator.analytics.core.values import LOG_FIGURES, READ_FIGURES
from orchestrator.results.spark import SUM, Reading, overlap

MOST_POSITIONS = 150
"""Limit per node; more samples are thinned out."""

MOST_LINKS = 300
"""Limit of links; those with most traffic are kept."""


def _seconds(t_ns: str) -> Column:
    return F.round((F.col(t_ns) - F.col("zero_ns")) / 1e9, 3)


def logs(reading: Reading) -> Mapping[str, DataFrame]:
    nodes = reading.table("nodes")
    whole = nodes.groupBy("run").agg(
        F.count("*").alias("boots"),
        F.count(F.when(~F.col("complete"), True)).alias("incomplete_boots"),
        *(F.sum(F.col(name).cast(SUM)).alias(name) for name in LOG_FIGURES[2:]),
    )
    sums = (F.sum(F.col(name).cast(SUM)).alias(name) for name in READ_FIGURES)
    return {
        "logs": whole,
        "read": nodes.groupBy("run", "node").agg(*sums),
        "boots": nodes.select("run", "node", "boot", "first_ns", "last_ns"),
    }


def network(reading: Reading) -> Mapping[str, DataFrame]:
    positions = reading.table("positions").join(reading.windows, "run")
    return {"positions": _positions(positions), "links": _links(reading.table("deliveries"))}


def _positions(positions: DataFrame) -> DataFrame:
    step = F.greatest(F.ceil((F.col("ended_ns") - F.col("zero_ns")) / (MOST_POSITIONS * 1e9)), F.lit(1))
    second = F.floor((F.col("t_ns") - F.col("zero_ns")) / 1e9)
    thinned = positions.where(second % step == 0)
    return thinned.select("run", "node", "t_ns", F.round("x", 1).alias("x"), F.round("y", 1).alias("y"))


def _links(deliveries: DataFrame) -> DataFrame:
    """Sums up each directed link over the whole run; expectations are weighted by what was sent."""
    used = deliveries.groupBy("run", "src", "dst").agg(
        F.sum("attempted").alias("attempted"),
        F.sum("delivered").alias("delivered"),
        F.round(F.sum(F.col("attempted") * F.col("expected")) / F.sum("attempted"), 4).alias("expected"),
    )
    busiest = Window.partitionBy("run").orderBy(F.desc("attempted"), "src", "dst")
    return used.withColumn("rank", F.row_number().over(busiest)).where(F.col("rank") <= MOST_LINKS)


def ways(reading: Reading) -> Mapping[str, DataFrame]:
    connectivity = reading.table("connectivity").join(reading.windows, "run")
    inside = overlap(F.col("from_ns"), F.col("until_ns"))
    connected = F.sum(F.when(F.col("connected"), inside).otherwise(0))
    times = (_seconds("from_ns").alias("from"), _seconds("until_ns").alias("until"))
    return {
        "connected": connectivity.groupBy("run", "app").agg(connected.alias("connected_ns")),
        "intervals": connectivity.select("run", "app", *times, "connected", "from_ns"),
    }
