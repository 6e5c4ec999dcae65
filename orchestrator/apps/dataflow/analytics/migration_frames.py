"""Finds in Spark how long sinks waited while operators moved; does nothing for runs in which none was to."""

from collections.abc import Mapping

import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from node_agent.apps.dataflow.model.plan import DeploymentPlan
from orchestrator.results.spark import Reading

AFTERWARDS_NS = 1_000_000_000


def frames(reading: Reading) -> Mapping[str, DataFrame | pa.Table]:
    plans = (app.plan for run in reading.runs for app in run.apps.values())
    if not any(plan.moving for plan in plans if isinstance(plan, DeploymentPlan)):
        return {}
    steps = reading.table("migrations")
    moves = F.broadcast(
        steps.groupBy("run", "app", "replica", "migration").agg(
            F.min("t_ns").alias("since_ns"), (F.max("t_ns") + AFTERWARDS_NS).alias("until_ns")
        )
    )
    before = Window.partitionBy("run", "app", "sink").orderBy("delivered_ns")
    gaps = (
        reading.table("tuples")
        .where("delivered")
        .select("run", "app", "sink", "delivered_ns", F.lag("delivered_ns").over(before).alias("before_ns"))
        .where("before_ns is not null")
        .withColumn("gap_ns", F.col("delivered_ns") - F.col("before_ns"))
    )
    usual = gaps.groupBy("run", "app", "sink").agg(
        F.expr("cast(percentile(gap_ns, 0.5) as bigint)").alias("usual_ns")
    )
    longest = (
        gaps.join(moves, ["run", "app"])
        .where("delivered_ns > since_ns and before_ns < until_ns")
        .groupBy("run", "app", "sink", "replica", "migration")
        .agg(F.max("gap_ns").alias("gap_ns"))
    )
    return {
        "steps": reading.columns("migrations"),
        "gaps": longest.join(F.broadcast(usual), ["run", "app", "sink"]),
    }
