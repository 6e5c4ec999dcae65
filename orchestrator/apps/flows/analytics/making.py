"""Makes the tables of flows in Spark, from the records of sources and sinks.

Records repeat what earlier ones said of a second, with counters that only grow: the largest is the last.
"""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from orchestrator.results.columns import TEXT
from orchestrator.results.spark import Ingest

S = 1_000_000_000
FLOW = ("run", "app", "flow")
SECOND = (*FLOW, "boot", "second")
# The order of a row of ``Heard`` in ``node_agent.apps.flows.events``.
_PACKETS, _BYTES, _JITTER, _BASE, _SUM, _LEAST, _MOST, _DELAYS = range(1, 9)
_EXACT, _HALF = 64, 32


def flow_seconds(ingest: Ingest) -> DataFrame:
    """The table ``flows``."""
    sent = _of_kind(ingest, "flow_sent").withColumn("zero_ns", F.col("opened_ns") - F.col("ahead_ns"))
    renamed = {"boot": "sink_boot", "source_boot": "boot"}
    received = _of_kind(ingest, "flow_received").withColumnsRenamed(renamed)
    said = [_sent(sent), _heard(received), _arrived(received, sent)]
    columns = list(dict.fromkeys(name for frame in said for name in frame.columns))
    together = said[0]
    for frame in said[1:]:
        together = together.unionByName(frame, allowMissingColumns=True)
    seconds = together.groupBy(*SECOND).agg(
        *(F.max(name).alias(name) for name in columns if name not in SECOND)
    )
    # Without a word of the source, nobody knows how its clock goes; where clocks agree, that is no question.
    off = F.col("sink_ahead_ns") - F.col("source_ahead_ns")
    base = F.col("base_ns") - off
    count = F.col("delivered_packets")
    return seconds.withColumns(
        {
            "t_ns": F.col("t_ns"),
            "delay_mean_s": (base + F.col("sum_ns") / count) / S,
            "delay_min_s": (base + F.col("least_ns")) / S,
            "delay_max_s": (base + F.col("most_ns")) / S,
            "delays_ns": F.when(base.isNotNull(), _delays(F.col("buckets"), base)),
            **{name: F.coalesce(name, F.lit(0)) for name in columns if name.endswith(("_packets", "_bytes"))},
        }
    )


def flow_totals(ingest: Ingest) -> DataFrame:
    """The table: the last counters of every start of a source and of a sink, added up."""
    planned = ingest.frame(
        [
            {
                "run": run.run,
                "app": app.name,
                "flow": flow.name,
                "source": flow.source,
                "sink": flow.sink,
                "protocol": flow.protocol,
            }
            for run in ingest.runs
            for app in run.apps.values()
            if app.kind == "flows"
            for flow in app.plan
        ],
        dict.fromkeys((*FLOW, "source", "sink", "protocol"), TEXT),
    )
    sent = {
        "sent_packets": "packets",
        "sent_bytes": "bytes",
        "skipped": "skipped",
        "acknowledged_bytes": "acknowledged",
        "connections": "connections",
        "failures": "failures",
    }
    received = {
        "received_packets": "packets",
        "received_bytes": "bytes",
        "duplicates": "duplicates",
        "reordered": "reordered",
        "late": "late",
    }
    kind = F.col("kind")
    by_source = _added(ingest.records.where(kind == "flow_sent"), ("boot",), sent)
    by_sink = _added(ingest.records.where(kind == "flow_received"), ("boot", "source_boot"), received)
    totals = planned.join(by_source, list(FLOW), "left").join(by_sink, list(FLOW), "left")
    return totals.fillna(0, [*sent, *received])


def _added(records: DataFrame, starts: Sequence[str], columns: dict[str, str]) -> DataFrame:
    last = records.groupBy(*FLOW, *starts).agg(*(F.max(name).alias(new) for new, name in columns.items()))
    return last.groupBy(*FLOW).agg(*(F.sum(name).alias(name) for name in columns))


def _of_kind(ingest: Ingest, kind: str) -> DataFrame:
    """With ``ahead_ns``: how far the node's clock was ahead, which is nothing where all have one clock."""
    own = [run.run for run in ingest.runs if run.clocks]
    ahead = F.when(F.col("run").isin(own), F.col("now_ns") - F.col("t_ns")).otherwise(F.lit(0))
    return ingest.records.where(F.col("kind") == kind).withColumn("ahead_ns", ahead)


def _sent(records: DataFrame) -> DataFrame:
    row = F.col("row")
    listed = records.withColumn("row", F.explode("seconds"))
    return (
        listed.withColumn("second", row[0])
        .groupBy(*SECOND)
        .agg(
            F.max(row[1]).alias("sent_packets"),
            F.max(row[2]).alias("sent_bytes"),
            F.max_by("ahead_ns", "now_ns").alias("source_ahead_ns"),
            F.max_by(F.col("zero_ns") + row[0] * S, "now_ns").alias("t_ns"),
        )
    )


def _heard(records: DataFrame) -> DataFrame:
    """Of a sink that was started anew within a second, the start that received most tells the delays."""
    row = F.col("row")
    listed = records.withColumn("row", F.explode("heard")).withColumn("second", row[0])
    last = listed.groupBy(*SECOND, "sink_boot").agg(
        F.max_by(row, row[_PACKETS]).alias("row"), F.max_by("ahead_ns", row[_PACKETS]).alias("ahead_ns")
    )
    return (
        last.groupBy(*SECOND)
        .agg(
            F.sum(row[_PACKETS]).alias("delivered_packets"),
            F.sum(row[_BYTES]).alias("delivered_bytes"),
            F.max_by(row, row[_PACKETS]).alias("row"),
            F.max_by("ahead_ns", row[_PACKETS]).alias("sink_ahead_ns"),
        )
        .withColumns(
            {
                "jitter_s": row[_JITTER] / S,
                "base_ns": row[_BASE],
                "sum_ns": row[_SUM] * F.col("delivered_packets") / row[_PACKETS],
                "least_ns": row[_LEAST],
                "most_ns": row[_MOST],
                "buckets": F.slice(row, _DELAYS + 1, F.size(row)),
            }
        )
        .drop("row")
    )


def _arrived(records: DataFrame, sent: DataFrame) -> DataFrame:
    """By the seconds of the source that are nearest to those of the sink."""
    row = F.col("row")
    zero = sent.groupBy(*FLOW, "boot").agg(F.min("zero_ns").alias("zero_ns"))
    listed = records.withColumn("row", F.explode("arrived")).withColumn("own", row[0])
    last = listed.groupBy(*FLOW, "boot", "sink_boot", "own").agg(
        F.max(row[1]).alias("arrived_packets"),
        F.max(row[2]).alias("arrived_bytes"),
        F.max_by(F.col("opened_ns") - F.col("ahead_ns") + row[0] * S, row[1]).alias("at_ns"),
    )
    zero_ns = F.coalesce("zero_ns", F.col("at_ns") - F.col("own") * S)
    second = F.floor((F.col("at_ns") - zero_ns + S // 2) / S).cast("long")
    return (
        last.join(zero, [*FLOW, "boot"], "left")
        .withColumns({"second": F.greatest(second, F.lit(0)), "t_ns": zero_ns + second * S})
        .groupBy(*SECOND)
        .agg(
            F.sum("arrived_packets").alias("arrived_packets"),
            F.sum("arrived_bytes").alias("arrived_bytes"),
            F.max("t_ns").alias("t_ns"),
        )
    )


def _delays(buckets: Column, base: Column) -> Column:
    """The middle of each bucket as a delay, and its count, one after the other."""

    def value(each: Column, place: Column) -> Column:
        return F.when(place % 2 == 0, base + _middle_ns(each)).otherwise(each)

    return F.transform(buckets, value)


def _middle_ns(bucket: Column) -> Column:
    """As ``node_agent.apps.flows.delays.middle_ns``."""
    plain = F.when(bucket < 0, -1 - bucket).otherwise(bucket)
    octave = F.floor(plain / _HALF) - 1
    units = plain - octave * _HALF
    coarse = (2 * units + 1) * F.pow(F.lit(2.0), octave) * 500
    middle = F.when(plain < _EXACT, plain * 1000 + 500).otherwise(coarse).cast("long")
    return F.when(bucket < 0, -1 - middle).otherwise(middle)
