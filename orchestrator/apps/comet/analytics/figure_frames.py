"""What the metrics of the detection of events are computed from, in Spark. They are of the whole run."""

from collections.abc import Mapping

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from orchestrator.results.spark import Reading

S = 1_000_000_000
MOST_OCCURRENCES = 2000
"""Of a run: with more, it is not computed what an omniscient observer would have seen."""
_COUNTS = ("instances", "references", "requests", "marks", "bytes", "connections")


def frames(reading: Reading) -> Mapping[str, DataFrame]:
    by_time = Window.partitionBy("run", "app").orderBy("end_ns", "event", "number")
    first = reading.table("occurrences").withColumn("place", F.row_number().over(by_time))
    occurred = first.where(F.col("place") <= MOST_OCCURRENCES + 1)
    links = reading.table("event_links")
    last = links.groupBy("run", "app", "node", "neighbour", "boot").agg(
        *(F.max(name).alias(name) for name in _COUNTS)
    )
    sums = last.groupBy("run", "app", "node", "neighbour").agg(*(F.sum(name).alias(name) for name in _COUNTS))
    waited = links.groupBy("run", "app", "node", "neighbour").agg(
        F.max("waiting_bytes").alias("waiting_bytes_max")
    )
    bucket = (F.floor(F.col("t_ns") / (10 * S)) * (10 * S)).cast("long").alias("t_ns")
    per_node = links.groupBy("run", "app", "node", bucket, "neighbour").agg(
        F.max("waiting_bytes").alias("bytes")
    )
    contacts = reading.table("event_contacts")
    met = contacts.groupBy("run", "app", "node", "neighbour").agg(
        F.count_if("up").alias("downs"),
        F.count_if(~F.col("up")).alias("ups"),
        F.sum(F.when(F.col("up"), F.col("lasted_ns"))).alias("down_ns"),
        F.sum(F.when(~F.col("up"), F.col("lasted_ns"))).alias("up_ns"),
        F.max(F.when(F.col("up"), F.col("lasted_ns"))).alias("longest_ns"),
        F.min(F.when(F.col("up"), F.struct("t_ns", "lasted_ns")))["lasted_ns"].alias("first_ns"),
        F.max("t_ns").alias("t_ns"),
        F.max(F.struct("t_ns", "up"))["up"].alias("up"),
    )
    return {
        "contacts": met,
        "counts": reading.table("occurrences")
        .groupBy("run", "app", "event")
        .agg(F.count("*").alias("count")),
        "occurrences": occurred.select("run", "app", "event", "number", "start_ns", "end_ns"),
        "detections": reading.table("detections").select(
            "run", "app", "pattern", "t_ns", "end_ns", "delay_s", "told", "constituents"
        ),
        "links": sums.join(waited, ["run", "app", "node", "neighbour"]),
        "waiting": per_node.groupBy("run", "app", "node", "t_ns").agg(F.sum("bytes").alias("bytes")),
        "dropped": reading.table("event_steps")
        .where("step = 'dropped'")
        .groupBy("run", "app")
        .agg(F.count("*").alias("dropped")),
    }
