"""Computes the metrics of replicas: how often they switched, how long sources had no route, what they
skipped.
"""

from collections.abc import Mapping
from operator import itemgetter
from typing import Any

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from orchestrator.apps.dataflow.analytics.tuple_figures import inside
from orchestrator.results.columns import TEXT
from orchestrator.results.contribution import Rows
from orchestrator.results.spark import SUM, Reading, Subject, over_window, overlap, rounded


def frames(reading: Reading) -> Mapping[str, DataFrame]:
    switches, windows = reading.table("switches"), reading.windows
    carriers = _carriers(reading.table("tuples"), reading.table("hops"), windows)
    seconds = F.round((F.col("t_ns") - F.col("zero_ns")) / 1e9, 3)
    routes = switches.join(windows, "run")
    return {
        "switched": _switched(switches, carriers),
        "unrouted": _without_route(reading, switches),
        "passed_over": _passed_over(reading.table("operator_faults")),
        "routes": routes.select("run", "app", seconds.alias("t"), "replica", "downstream", "new", "t_ns"),
    }


def values(subject: Subject, rows: Mapping[str, Rows]) -> Mapping[str, Any]:
    routes = sorted(rows["routes"], key=itemgetter("t_ns", "replica", "downstream"))
    passed_over = sorted(rows["passed_over"], key=itemgetter("kind"))
    switches = next(iter(rows["switched"]), {"switches": 0})["switches"]
    return {
        "switches": switches,
        "switches_per_min": over_window(60 * switches, subject.window_ns),
        "no_route_s": _no_route_s(subject, rows["unrouted"]),
        "operator_faults": {row["kind"]: row["times"] for row in passed_over},
        "routes": [[row["t"], row["replica"], row["downstream"], row["new"]] for row in routes],
    }


def _no_route_s(subject: Subject, unrouted: Rows) -> float:
    """Returns the time without a route. An output that never reported a choice never had a route."""
    assert subject.app is not None
    plan = subject.app.plan
    outputs = sum(len(plan.of(name)) * len(plan.query.downstream(name)) for name in plan.query.sources())
    known = next(iter(unrouted), {"outputs": 0, "no_route_ns": 0})
    unknown_ns = max(outputs - known["outputs"], 0) * subject.window_ns
    return rounded((known["no_route_ns"] + unknown_ns) / 1e9)


def _carriers(tuples: DataFrame, hops: DataFrame, windows: DataFrame) -> DataFrame:
    """Returns the replicas that emitted or received a tuple in the window."""
    emitted = tuples.select("run", "app", F.col("origin").alias("replica"), F.col("emitted_ns").alias("t_ns"))
    received = hops.select(
        "run", "app", F.col("receiver").alias("replica"), F.col("received_ns").alias("t_ns")
    )
    moved = emitted.union(received).join(windows, "run").where(inside("t_ns"))
    return moved.select("run", "app", "replica").distinct()


def _switched(switches: DataFrame, carriers: DataFrame) -> DataFrame:
    counted = switches.where("in_window and changed").join(carriers, ["run", "app", "replica"], "left_semi")
    return counted.groupBy("run", "app").agg(F.count("*").alias("switches"))


def _without_route(reading: Reading, switches: DataFrame) -> DataFrame:
    """Returns times without a route: each change ends the time of ``old`` and begins that of ``new``; null
    means no route.
    """
    rows = [
        {"run": run.run, "app": app.name, "replica": replica.id}
        for run in reading.runs
        for app in run.apps.values()
        if app.kind == "query"
        for name in app.plan.query.sources()
        for replica in app.plan.of(name)
    ]
    sources = reading.frame(rows, {"run": TEXT, "app": TEXT, "replica": TEXT}).join(reading.windows, "run")
    in_order = Window.partitionBy("run", "app", "replica", "downstream").orderBy("t_ns")
    before, after = F.lag("t_ns").over(in_order), F.lead("t_ns").over(in_order)
    return (
        switches.join(F.broadcast(sources), ["run", "app", "replica"])
        .withColumns({"before": before, "after": after})
        .withColumn(
            "ended", F.when(F.col("old").isNull(), overlap(F.col("before"), F.col("t_ns"))).otherwise(0)
        )
        .withColumn("lasts", F.col("after").isNull() & F.col("new").isNull())
        .withColumn("began", F.when(F.col("lasts"), overlap(F.col("t_ns"), F.col("after"))).otherwise(0))
        .groupBy("run", "app")
        .agg(
            F.sum(F.col("ended") + F.col("began")).alias("no_route_ns"),
            F.countDistinct("replica", "downstream").alias("outputs"),
        )
    )


def _passed_over(faults: DataFrame) -> DataFrame:
    """Counts what operators skipped, by kind: the text before the colon."""
    kind = F.substring_index("reason", ":", 1).alias("kind")
    # Each replica counts from 1 again after a restart; the next record makes up for a lost one.
    counted = faults.groupBy("run", "app", "replica", "node", "boot", kind).agg(F.max("count").alias("times"))
    return counted.groupBy("run", "app", "kind").agg(F.sum(F.col("times").cast(SUM)).alias("times"))
