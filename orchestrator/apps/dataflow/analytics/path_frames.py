"""Computes in Spark what ``paths`` needs: what reached each operator, where time was spent, which paths were
used.
"""

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from orchestrator.apps.dataflow.analytics.path_table import operator_in
from orchestrator.apps.dataflow.analytics.paths import PARTS
from orchestrator.apps.dataflow.analytics.tuple_figures import inside
from orchestrator.results.spark import SUM, Reading


def frames(reading: Reading) -> Mapping[str, DataFrame]:
    tuples, hops = reading.table("tuples"), reading.table("hops")
    return {
        "stages": _stages(reading.table("paths").where("in_window")),
        "arrived": _arrived(reading, tuples, hops),
    }


def _stages(paths: DataFrame) -> DataFrame:
    """Sums up the time of all tuples that took a path, by path and place in it. Tuples whose path is not
    known completely have neither.
    """
    parts = [f"{part}_ns" for part in PARTS]
    stages = F.when(F.col("complete"), F.arrays_zip("path", *parts))
    key = ("run", "app", "origin", "sink", F.when(F.col("complete"), F.col("path")).alias("path"))
    each = paths.select(*key, F.posexplode_outer(stages).alias("place", "stage"))
    sums = (F.sum(F.col(f"stage.{name}").cast(SUM)).alias(name) for name in parts)
    return each.groupBy("run", "app", "origin", "sink", "path", "place").agg(
        F.count("*").alias("tuples"), *sums
    )


def _arrived(reading: Reading, tuples: DataFrame, hops: DataFrame) -> DataFrame:
    """Counts tuples when they first reach an operator, or their source makes them; those that come again do
    not count. Streams of sources have the names of replicas.
    """
    key = ("run", "app", "origin", "tau")
    received = hops.where("received_ns is not null").select(
        *key, F.col("receiver").alias("replica"), F.col("received_ns").alias("t_ns"), "size"
    )
    made = tuples.where(F.col("emitted_ns").isNotNull() & F.col("origin").contains("/")).select(
        *key, F.col("origin").alias("replica"), F.col("emitted_ns").alias("t_ns"), "size"
    )
    operator = operator_in(F.col("replica")).alias("operator")
    first = F.min(F.struct("t_ns", "replica", "size")).alias("first")
    reached = received.union(made).groupBy("run", "app", operator, "origin", "tau").agg(first)
    return (
        reading.timed(reached.select("run", "app", "operator", "first.*"))
        .where(inside("t_ns"))
        .groupBy("run", "app", "operator")
        .agg(
            F.count("*").alias("tuples"),
            F.sum(F.col("size").cast(SUM)).alias("bytes"),
            F.size(F.collect_set("replica")).alias("replicas"),
        )
    )
