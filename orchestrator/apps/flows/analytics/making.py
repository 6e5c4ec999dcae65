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
    zero_ns = F.try_subtract(F.col("opened_ns"), F.col("ahead_ns"))
    sent = _of_kind(ingest, "flow_sent").withColumn("zero_ns", zero_ns)
    received = _by_source_boot(_of_kind(ingest, "flow_received"))
    said = [_sent(sent), _heard(received), _arrived(received, sent)]
    columns = list(dict.fromkeys(name for frame in said for name in frame.columns))
    together = said[0]
    for frame in said[1:]:
        together = together.unionByName(frame, allowMissingColumns=True)
    seconds = together.groupBy(*SECOND).agg(
        *(F.max(name).alias(name) for name in columns if name not in SECOND)
    )
    # Without a word of the source, nobody knows how its clock goes; where clocks agree, that is no question.
    off = F.try_subtract(F.col("sink_ahead_ns"), F.col("source_ahead_ns"))
    base = F.try_subtract(F.col("base_ns"), off)
    return seconds.withColumns(
        {
            "t_ns": F.col("t_ns"),
            "delay_mean_s": (base + F.col("mean_ns")) / S,
            "delay_min_s": F.try_add(base, F.col("least_ns")) / S,
            "delay_max_s": F.try_add(base, F.col("most_ns")) / S,
            "delays_ns": F.when(base.isNotNull(), _delays(F.col("buckets"), base)),
            **{name: F.coalesce(name, F.lit(0)) for name in columns if name.endswith(("_packets", "_bytes"))},
            **{f"delivered_{what}": _at_most_sent(what) for what in ("packets", "bytes")},
            **{f"again_{what}": _beyond_sent(what) for what in ("packets", "bytes")},
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
    by_source = _added(ingest.records("flow_sent"), ("boot",), sent)
    by_sink = _added(ingest.records("flow_received"), ("boot", "source_boot"), received)
    again = _again(ingest.table("flows"))
    totals = planned
    for frame in (by_source, by_sink, again):
        totals = totals.join(frame, list(FLOW), "left")
    return (
        totals.fillna(0, [*sent, *received, *_AGAIN])
        .withColumns(
            {
                "received_packets": F.greatest(F.col("received_packets") - F.col("again_packets"), F.lit(0)),
                "received_bytes": F.greatest(F.col("received_bytes") - F.col("again_bytes"), F.lit(0)),
                "duplicates": F.try_add(F.col("duplicates"), F.col("again_packets")),
            }
        )
        .drop(*_AGAIN)
    )


_AGAIN = ("again_packets", "again_bytes")


def _again(seconds: DataFrame) -> DataFrame:
    """By flow: what sinks have of a second beyond what was sent in it."""
    return seconds.groupBy(*FLOW).agg(*(F.try_sum(name).alias(name) for name in _AGAIN))


def _beyond_sent(what: str) -> Column:
    """What came again: a sink that was started anew does not know what it had before, and counts it."""
    return F.greatest(F.col(f"delivered_{what}") - F.col(f"sent_{what}"), F.lit(0))


def _at_most_sent(what: str) -> Column:
    """What was delivered of a second, without what came again; all of it if the source has said nothing."""
    delivered = F.coalesce(f"delivered_{what}", F.lit(0))
    return F.least(delivered, F.coalesce(f"sent_{what}", delivered))


def _by_source_boot(received: DataFrame) -> DataFrame:
    return received.withColumnsRenamed({"boot": "sink_boot", "source_boot": "boot"})


def _added(records: DataFrame, starts: Sequence[str], columns: dict[str, str]) -> DataFrame:
    last = records.groupBy(*FLOW, *starts).agg(*(F.max(name).alias(new) for new, name in columns.items()))
    return last.groupBy(*FLOW).agg(*(F.try_sum(name).alias(name) for name in columns))


def _of_kind(ingest: Ingest, kind: str) -> DataFrame:
    """With ``ahead_ns``: how far the node's clock was ahead, which is nothing where all have one clock."""
    own = [run.run for run in ingest.runs if run.clocks]
    ahead = F.when(F.col("run").isin(own), F.try_subtract(F.col("now_ns"), F.col("t_ns"))).otherwise(F.lit(0))
    return ingest.records(kind).withColumn("ahead_ns", ahead)


def _sent(records: DataFrame) -> DataFrame:
    listed = records.withColumn("row", F.explode("seconds"))
    return (
        listed.withColumn("second", _value(0))
        .groupBy(*SECOND)
        .agg(
            F.max(_value(1)).alias("sent_packets"),
            F.max(_value(2)).alias("sent_bytes"),
            F.max_by("ahead_ns", "now_ns").alias("source_ahead_ns"),
            F.max_by(F.try_add(F.col("zero_ns"), _value(0) * S), "now_ns").alias("t_ns"),
        )
    )


def _heard(records: DataFrame) -> DataFrame:
    """Of a sink that was started anew within a second, the start that received most tells the delays, the
    earlier one if both received as much.
    """
    row, packets = F.col("row"), _value(_PACKETS)
    latest, most = F.struct(packets, "now_ns"), F.struct(packets, -F.col("sink_boot"))
    listed = records.withColumn("row", F.explode("heard")).withColumn("second", _value(0))
    last = listed.groupBy(*SECOND, "sink_boot").agg(
        F.max_by(row, latest).alias("row"), F.max_by("ahead_ns", latest).alias("ahead_ns")
    )
    return (
        last.groupBy(*SECOND)
        .agg(
            F.try_sum(packets).alias("delivered_packets"),
            F.try_sum(_value(_BYTES)).alias("delivered_bytes"),
            F.max_by(row, most).alias("row"),
            F.max_by("ahead_ns", most).alias("sink_ahead_ns"),
        )
        .withColumns(
            {
                "jitter_s": _value(_JITTER) / S,
                "base_ns": _value(_BASE),
                "mean_ns": F.try_divide(_value(_SUM), packets),
                "least_ns": _value(_LEAST),
                "most_ns": _value(_MOST),
                "buckets": F.slice(row, _DELAYS + 1, F.size(row)),
            }
        )
        .drop("row")
    )


def _arrived(records: DataFrame, sent: DataFrame) -> DataFrame:
    """By the seconds of the source that are nearest to those of the sink."""
    zero = sent.groupBy(*FLOW, "boot").agg(F.min("zero_ns").alias("zero_ns"))
    listed = records.withColumn("row", F.explode("arrived")).withColumn("own", _value(0))
    opened_ns = F.try_subtract(F.col("opened_ns"), F.col("ahead_ns"))
    last = listed.groupBy(*FLOW, "boot", "sink_boot", "own").agg(
        F.max(_value(1)).alias("arrived_packets"),
        F.max(_value(2)).alias("arrived_bytes"),
        F.max_by(F.try_add(opened_ns, _value(0) * S), _value(1)).alias("at_ns"),
    )
    zero_ns = F.coalesce("zero_ns", F.try_subtract(F.col("at_ns"), F.col("own") * S))
    since_ns = F.try_add(F.try_subtract(F.col("at_ns"), zero_ns), F.lit(S // 2))
    second = F.floor(since_ns / S).cast("long")
    return (
        last.join(zero, [*FLOW, "boot"], "left")
        .withColumns(
            {
                "second": F.greatest(second, F.lit(0)),
                "t_ns": F.try_add(zero_ns, F.try_multiply(second, F.lit(S))),
            }
        )
        .groupBy(*SECOND)
        .agg(
            F.try_sum("arrived_packets").alias("arrived_packets"),
            F.try_sum("arrived_bytes").alias("arrived_bytes"),
            F.max("t_ns").alias("t_ns"),
        )
    )


def _value(place: int) -> Column:
    """Of ``row``; null if it is shorter."""
    return F.get("row", F.lit(place))


def _delays(buckets: Column, base: Column) -> Column:
    """The middle of each bucket as a delay, and its count, one after the other."""

    def value(each: Column, place: Column) -> Column:
        return F.when(place % 2 == 0, F.try_add(base, _middle_ns(each))).otherwise(each)

    return F.transform(buckets, value)


def _middle_ns(bucket: Column) -> Column:
    """As ``node_agent.apps.flows.delays.middle_ns``."""
    plain = F.when(bucket < 0, -1 - bucket).otherwise(bucket)
    octave = F.floor(plain / _HALF) - 1
    units = plain - octave * _HALF
    coarse = (2 * units + 1) * F.pow(F.lit(2.0), octave) * 500
    middle = F.when(plain < _EXACT, plain * 1000 + 500).otherwise(coarse).cast("long")
    return F.when(bucket < 0, -1 - middle).otherwise(middle)
