"""Computes the bit/s of routing daemons in Spark, from samples of their counters."""

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from orchestrator.results.contribution import AsRead
from orchestrator.results.spark import Ingest, Reading


def overhead(ingest: Ingest) -> AsRead:
    """Returns the table."""
    return AsRead("routing_overhead")


def frames(reading: Reading) -> Mapping[str, DataFrame]:
    return {"overhead": _rates(reading.timed(reading.table("overhead")))}


def _rates(samples: DataFrame) -> DataFrame:
    """Returns the bit/s of each kind of message, the mean over nodes;
    a node that never sent one counts as 0.
    """
    counter, t_ns = Window.partitionBy("run", "node", "message"), F.col("t_ns")
    before = F.max(F.when(t_ns <= F.col("measure_from_ns"), t_ns)).over(counter)
    after = F.min(F.when(t_ns >= F.col("measure_until_ns"), t_ns)).over(counter)

    def grown(name: str) -> Column:
        """Returns the growth since the sample before. A restarted daemon counts from 0 again."""
        now, earlier = F.col(name), F.lag(name).over(counter.orderBy("t_ns"))
        return F.when(now >= earlier, now - earlier).otherwise(now)

    spans = (
        samples.withColumns(
            {
                "sent": grown("sent_bytes"),
                "forwarded": grown("forwarded_bytes"),
                "begin_ns": F.coalesce(before, F.min(t_ns).over(counter)),
                "end_ns": F.coalesce(after, F.max(t_ns).over(counter)),
            }
        )
        .where("t_ns > begin_ns and t_ns <= end_ns")
        .groupBy("run", "node", "message", ((F.col("end_ns") - F.col("begin_ns")) / 1e9).alias("seconds"))
        .agg(*(F.sum(F.col(name).cast("double")).alias(name) for name in ("sent", "forwarded")))
    )
    nodes = spans.groupBy("run").agg(F.count_distinct("node").alias("nodes"))

    def rate(name: str) -> Column:
        # Sorted first, because sums of fractions depend on their order.
        rates = F.array_sort(F.collect_list(8 * F.col(name) / F.col("seconds")))
        return F.aggregate(rates, F.lit(0.0), lambda total, each: total + each)

    return (
        spans.groupBy("run", "message")
        .agg(rate("sent").alias("sent"), rate("forwarded").alias("forwarded"))
        .join(nodes, "run")
    )
