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
    paths = reading.table("paths").where("in_window")
    complete = paths.where("complete")
    known = F.count(F.when(F.col("complete"), True)).alias("complete")
    return {
        "known": paths.groupBy("run", "app").agg(F.count("*").alias("delivered"), known),
        "stages": _stages(complete),
        "shares": _shares(complete),
        "arrived": _arrived(reading.table("hops"), reading.windows),
        "made": _made(reading.table("tuples"), reading.windows),
    }


def _stages(complete: DataFrame) -> DataFrame:
    """Sums up the time of all tuples by operator."""
    columns = ["path", *(f"{part}_ns" for part in PARTS)]
    stage = complete.select("run", "app", F.explode(F.arrays_zip(*columns)).alias("stage"))
    operator = operator_in(F.col("stage.path")).alias("operator")
    sums = (F.sum(F.col(f"stage.{name}").cast(SUM)).alias(name) for name in columns[1:])
    return stage.groupBy("run", "app", operator).agg(*sums)


def _shares(complete: DataFrame) -> DataFrame:
    """Returns by stream and sink how many tuples took each path."""
    taken = complete.groupBy("run", "app", "origin", "sink", "path").agg(F.count("*").alias("count"))
    counts = F.array_sort(F.collect_list("count")).alias("tuples")
    return taken.groupBy("run", "app", "origin", "sink").agg(counts)


def _arrived(hops: DataFrame, windows: DataFrame) -> DataFrame:
    """Counts tuples when they first reach an operator; those that come again do not count."""
    operator = operator_in(F.col("receiver")).alias("operator")
    first = F.min(F.struct("received_ns", "receiver", "size")).alias("first")
    reached = (
        hops.where("received_ns is not null").groupBy("run", "app", operator, "origin", "tau").agg(first)
    )
    return (
        reached.select("run", "app", "operator", "first.*")
        .join(windows, "run")
        .where(inside("received_ns"))
        .groupBy("run", "app", "operator")
        .agg(
            F.count("*").alias("tuples"),
            F.sum(F.col("size").cast(SUM)).alias("bytes"),
            F.size(F.collect_set("receiver")).alias("replicas"),
        )
    )


def _made(tuples: DataFrame, windows: DataFrame) -> DataFrame:
    """Counts what sources made: their streams have the names of replicas."""
    made = tuples.where(F.col("origin").contains("/")).select(
        "run", "app", "origin", "tau", "emitted_ns", "size"
    )
    operator = operator_in(F.col("origin")).alias("operator")
    return (
        made.distinct()
        .join(windows, "run")
        .where(inside("emitted_ns"))
        .groupBy("run", "app", operator)
        .agg(
            F.count("*").alias("tuples"),
            F.sum(F.col("size").cast(SUM)).alias("bytes"),
            F.size(F.collect_set("origin")).alias("replicas"),
        )
    )
