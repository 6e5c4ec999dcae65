"""Computes in Spark what ``paths`` needs: what reached each operator, where time was spent, which paths were
used.
"""

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from orchestrator.apps.dataflow.analytics.path_table import operator_in
from orchestrator.apps.dataflow.analytics.paths import PARTS
from orchestrator.results.spark import SUM, Reading, inside


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
    stages = f"case when complete then arrays_zip(path, {', '.join(parts)}) end"
    key = ("run", "app", "origin", "sink")
    each = paths.selectExpr(
        *key, "case when complete then path end as path", f"posexplode_outer({stages}) as (place, stage)"
    )
    sums = (F.expr(f"sum(cast(stage.{name} as {SUM})) as {name}") for name in parts)
    return each.groupBy(*key, "path", "place").agg(F.expr("count(*) as tuples"), *sums)


def _arrived(reading: Reading, tuples: DataFrame, hops: DataFrame) -> DataFrame:
    """Counts tuples when they first reach an operator, or their source makes them; those that come again do
    not count. Streams of sources have the names of replicas.
    """
    key = ("run", "app", "origin", "tau")
    received = hops.where("received_ns is not null").selectExpr(
        *key, "receiver as replica", "received_ns as t_ns", "size"
    )
    made = tuples.where("emitted_ns is not null and contains(origin, '/')").selectExpr(
        *key, "origin as replica", "emitted_ns as t_ns", "size"
    )
    operator = operator_in(F.col("replica")).alias("operator")
    first = F.expr("min(struct(t_ns, replica, size)) as first")
    reached = received.union(made).groupBy("run", "app", operator, "origin", "tau").agg(first)
    return (
        reading.timed(reached.selectExpr("run", "app", "operator", "first.*"))
        .where(inside("t_ns"))
        .groupBy("run", "app", "operator")
        .agg(
            F.expr("count(*) as tuples"),
            F.expr(f"sum(cast(size as {SUM})) as bytes"),
            F.expr("size(collect_set(replica)) as replicas"),
        )
    )
