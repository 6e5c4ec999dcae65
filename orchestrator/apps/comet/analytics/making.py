"""Makes the tables of the detection of events in Spark."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from orchestrator.results.spark import Ingest

S = 1_000_000_000


def occurrences(ingest: Ingest) -> DataFrame:
    """A node that was killed may have told an instance twice."""
    told = ingest.records("event_occurred")
    return told.groupBy("run", "app", "node", "event", "number").agg(
        F.min("t_ns").alias("t_ns"),
        F.min("start_ns").alias("start_ns"),
        F.min("end_ns").alias("end_ns"),
    )


def detections(ingest: Ingest) -> DataFrame:
    """One row for each set of constituents; ``told``: how many records there are of it."""
    records = ingest.records("event_detected")
    found = records.groupBy("run", "app", "node", "pattern", "constituents").agg(
        F.min("t_ns").alias("t_ns"),
        F.min("number").alias("number"),
        F.min("start_ns").alias("start_ns"),
        F.min("end_ns").alias("end_ns"),
        F.count("*").alias("told"),
    )
    return found.withColumn("delay_s", F.try_subtract(F.col("t_ns"), F.col("end_ns")) / S)


def event_links(ingest: Ingest) -> DataFrame:
    return ingest.records("event_link")


def event_contacts(ingest: Ingest) -> DataFrame:
    return ingest.records("event_contact")


def event_stores(ingest: Ingest) -> DataFrame:
    return ingest.records("event_store")


def event_steps(ingest: Ingest) -> DataFrame:
    of = ("run", "app", "node", "t_ns", "pattern")
    none = {name: F.lit(None) for name in ("event", "number", "events", "from_ns", "until_ns")}
    types = {
        "event": "string",
        "number": "long",
        "events": "array<string>",
        "from_ns": "long",
        "until_ns": "long",
    }
    empty = {name: column.cast(types[name]).alias(name) for name, column in none.items()}
    arrived = ingest.records("event_arrived").select(
        *of,
        "event",
        "number",
        empty["events"],
        empty["from_ns"],
        empty["until_ns"],
        F.lit("arrived").alias("step"),
    )
    asked = ingest.records("event_asked").select(
        *of, empty["event"], empty["number"], "events", "from_ns", "until_ns", F.lit("asked").alias("step")
    )
    dropped = ingest.records("event_dropped").select(
        *of[:4],
        F.col("place").alias("pattern"),
        "event",
        "number",
        empty["events"],
        empty["from_ns"],
        empty["until_ns"],
        F.lit("dropped").alias("step"),
    )
    return arrived.unionByName(asked).unionByName(dropped)
