"""What the metrics of flows are computed from, in Spark: sums over the seconds of the measured window.

A second is in the window if its middle is. In virtual time seconds and window begin together if the warm-up
is a whole number of seconds; in real time nodes begin some milliseconds apart.
"""

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from orchestrator.results.columns import TEXT
from orchestrator.results.spark import Reading

S = 1_000_000_000
FLOW = ("run", "app", "flow")
GRACE_NS = 2 * S
MOST_DRAWN = 8
"""Flows that the report draws one by one."""


def frames(reading: Reading) -> Mapping[str, DataFrame]:
    rows = reading.timed(reading.table("flows"))
    middle = F.col("t_ns") + S // 2
    length = F.col("measure_until_ns") - F.col("measure_from_ns")
    grace = F.least(F.lit(GRACE_NS), length / 4)
    begun = middle >= F.col("measure_from_ns")
    inside = rows.withColumns(
        {
            "inside": begun & (middle < F.col("measure_until_ns")),
            "counted": begun & (middle < F.col("measure_until_ns") - grace),
        }
    ).where("inside")
    # All flows together have an empty name.
    both = F.explode(F.array(F.col("flow"), F.lit("")))
    totals = (
        reading.table("flow_totals")
        .withColumn("flow", both)
        .groupBy(*FLOW)
        .agg(*(F.sum(each).alias(each) for each in ("duplicates", "reordered")))
    )
    totals = reading.timed(totals).select(
        *FLOW, "duplicates", "reordered", _whole_seconds(length).alias("seconds")
    )
    sums = _sums(inside.withColumn("flow", both))
    return {"flows": totals.join(sums, list(FLOW), "left"), "seconds": _seconds(reading)}


def _whole_seconds(length: Column) -> Column:
    """Of the window; all middles of seconds in it."""
    return F.greatest(F.rint(length / S), F.lit(1.0))


def _sums(inside: DataFrame) -> DataFrame:
    counted, sent = F.col("counted"), F.col("sent_packets")
    delivered = F.least(F.col("delivered_packets"), sent)
    sums = inside.groupBy(*FLOW).agg(
        F.try_sum(F.when(counted, sent)).alias("sent"),
        F.try_sum(F.when(counted, delivered)).alias("delivered"),
        F.try_sum("sent_bytes").alias("offered_bytes"),
        F.try_sum("arrived_bytes").alias("arrived_bytes"),
        _weighted("delay_mean_s").alias("delay_mean_s"),
        F.max(F.when(counted, F.col("delay_max_s"))).alias("delay_max_s"),
        _weighted("jitter_s").alias("jitter_s"),
    )
    last_place = F.floor(F.size("delays_ns") / 2).cast("int") - 1
    delays, place = F.col("delays_ns"), F.col("place")
    pairs = (
        inside.where(counted & (F.size(delays) >= 2))
        .withColumn("place", F.explode(F.sequence(F.lit(0), last_place)))
        .select(
            *FLOW, F.get(delays, place * 2).alias("delay_ns"), F.get(delays, place * 2 + 1).alias("times")
        )
    )
    quantiles = pairs.groupBy(*FLOW).agg(
        F.expr("percentile(delay_ns, array(0.5D, 0.95D), times)").alias("quantiles")
    )
    return sums.join(quantiles, list(FLOW), "left")


def _weighted(name: str) -> Column:
    """The mean by packets, in an order of its own: sums of fractions depend on theirs."""
    weight = F.when(F.col("counted") & F.col(name).isNotNull(), F.col("delivered_packets"))
    parts = F.array_sort(F.collect_list(F.col(name) * weight))
    total = F.aggregate(parts, F.lit(0.0), lambda sum_, each: sum_ + each)
    return F.when(F.sum(weight) > 0, total / F.sum(weight))


def _seconds(reading: Reading) -> DataFrame:
    """By flow, of the first few, and of all together (the flow is empty)."""
    drawn = reading.frame(
        [
            {"run": run.run, "app": app.name, "flow": flow.name}
            for run in reading.runs
            for app in run.apps.values()
            if app.kind == "flows"
            for flow in app.plan[:MOST_DRAWN]
        ],
        dict.fromkeys(FLOW, TEXT),
    )
    columns = (*FLOW, "t_ns", "sent_bytes", "arrived_bytes")
    rows = reading.table("flows").where(F.col("t_ns").isNotNull()).select(*columns)
    moment = F.floor(F.col("t_ns") / S).cast("long") * S
    together = (
        rows.groupBy("run", "app", moment.alias("t_ns"))
        .agg(F.try_sum("sent_bytes").alias("sent_bytes"), F.try_sum("arrived_bytes").alias("arrived_bytes"))
        .withColumn("flow", F.lit(""))
    )
    return rows.join(F.broadcast(drawn), list(FLOW)).select(*columns).unionByName(together.select(*columns))
