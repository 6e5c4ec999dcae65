"""Makes the tables of the core: one function for each table. ``tables`` declares them."""

from collections.abc import Sequence
from typing import Any

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from orchestrator.analytics import schemas
from orchestrator.analytics.core.connectivity import connected_intervals, read_changes
from orchestrator.analytics.core.tables import APPS, CONNECTIVITY, DELIVERIES, POSITIONS, RUNS
from orchestrator.analytics.ingest import TablesInTheMaking
from orchestrator.results.columns import COUNT, FLAG, REAL, TEXT
from orchestrator.results.inputs import RunInput

# Ground truth as the radio writes it.
RAW_LINKS = {"t_ns": COUNT, "src": TEXT, "dst": TEXT, "up": FLAG, "cost": REAL}
RAW_POSITIONS = {name: kind for name, kind in POSITIONS.columns.items() if name != "run"}
RAW_DELIVERIES = {name: kind for name, kind in DELIVERIES.columns.items() if name != "run"}

# Ground truth of somebody else's run may contain anything.
NEAR = "abs(x) < 1e12 and abs(y) < 1e12"
COUNTED = (
    "attempted between 0 and 1e15 and delivered between 0 and 1e15 and coalesce(expected, 0) between 0 and 1"
)

_FROM_TELEMETRY = {"first_ns", "ended_ns", "records", "duplicates", "corrupt_lines", "refused"}
_DESCRIBED = {name: kind for name, kind in RUNS.columns.items() if name not in _FROM_TELEMETRY}


def nodes(making: TablesInTheMaking) -> DataFrame:
    lines, unread = making.lines, making.frame(_unread(making.runs), schemas.UNREAD)
    believed = ~F.col("corrupt") & ~F.col("is_refused")
    seq = F.when(believed, F.col("seq"))
    present = F.when(~F.col("corrupt"), F.col("seq"))
    started, stopped = believed & (F.col("kind") == "agent_start"), believed & (F.col("kind") == "agent_stop")
    boots = lines.groupBy("run", "node", "boot").agg(
        F.count_distinct(seq).alias("records"),
        (F.count(seq) - F.count_distinct(seq)).alias("duplicates"),
        F.count_distinct(present).alias("present"),
        F.count(F.when(F.col("corrupt"), True)).alias("corrupt_lines"),
        F.count(F.when(F.col("is_refused"), True)).alias("refused"),
        F.min(seq).alias("first_seq"),
        F.max(present).alias("last_seq"),
        F.min("t_ns").alias("first_ns"),
        F.max("t_ns").alias("last_ns"),
        F.max(started).alias("started"),
        F.max(stopped).alias("stopped"),
        F.max(F.when(stopped, F.col("reason"))).alias("stop_reason"),
    )
    counts = ("records", "duplicates", "present", "corrupt_lines", "refused", "unread")
    flags = ("started", "stopped")
    # seq counts from 0, so missing records at the beginning are noticed as well.
    missing = F.coalesce(F.col("last_seq") + 1 - F.col("present"), F.lit(0))
    unread = unread.groupBy("run", "node", "boot").agg(F.sum("unread").alias("unread"))
    return (
        boots.join(unread, ["run", "node", "boot"], "full")
        .withColumns({name: F.coalesce(F.col(name), F.lit(0)) for name in counts})
        .withColumns({name: F.coalesce(F.col(name), F.lit(False)) for name in flags})
        .withColumn("corrupt_lines", F.col("corrupt_lines") + F.col("unread"))
        .withColumn("missing", missing)
        .withColumn("complete", F.col("started") & F.col("stopped") & (F.col("missing") == 0))
    )


def _unread(runs: Sequence[RunInput]) -> list[dict[str, Any]]:
    """Returns rows of ``schemas.UNREAD``: how many lines Spark does not read."""
    return [
        {"run": run.run, "node": segment.node, "boot": segment.boot, "unread": unread}
        for run in runs
        for segment in run.segments
        if (unread := segment.unread())
    ]


def runs(making: TablesInTheMaking) -> DataFrame:
    described = making.frame([run.row() for run in making.runs], _DESCRIBED)
    nodes = making.table("nodes")
    counts = ["records", "duplicates", "corrupt_lines", "refused"]
    totals = nodes.groupBy("run").agg(
        F.min("first_ns").alias("first_ns"),
        F.max("last_ns").alias("ended_ns"),
        *(F.sum(name).alias(name) for name in counts),
    )
    # A node that records wrong times must not move the beginning or the end of the run: both are at most
    # one run's length away from the measured window.
    length = F.when(F.col("clock") == "real", _since_1970("finished") - _since_1970("started"))
    first = F.greatest("first_ns", F.col("measure_from_ns") - length)
    ended = F.least("ended_ns", F.col("measure_until_ns") + length)
    return (
        described.join(totals, "run", "left")
        .fillna(0, counts)
        .withColumn("first_ns", F.when(F.col("first_ns").isNotNull(), first))
        .withColumn("ended_ns", F.when(F.col("ended_ns").isNotNull(), ended))
    )


def _since_1970(moment: str) -> Column:
    """Returns the time in nanoseconds since 1970."""
    return F.unix_micros(moment) * 1000


def apps(making: TablesInTheMaking) -> DataFrame:
    rows = [
        {
            "run": run.run,
            "app": app.name,
            "kind": app.kind,
            "source_nodes": list(app.ends.sources),
            "sink_nodes": list(app.ends.sinks),
        }
        for run in making.runs
        for app in run.apps.values()
    ]
    return making.frame(rows, APPS.columns)


def links_truth(making: TablesInTheMaking) -> DataFrame:
    changes = making.truth("links.jsonl", RAW_LINKS)
    following = Window.partitionBy("run", "src", "dst").orderBy("t_ns", "up")
    return (
        changes.withColumn("down_ns", F.lead("t_ns").over(following))
        .where("up")
        .withColumnRenamed("t_ns", "up_ns")
    )


def positions(making: TablesInTheMaking) -> DataFrame:
    return making.truth("positions.jsonl", RAW_POSITIONS).where(NEAR)


def deliveries(making: TablesInTheMaking) -> DataFrame:
    return making.truth("deliveries.jsonl", RAW_DELIVERIES).where(COUNTED)


def connectivity(making: TablesInTheMaking) -> DataFrame:
    spans = {row["run"]: row for row in making.table("runs").collect()}
    rows = []
    for run in making.runs:
        span, links = spans[run.run], run.truth("links.jsonl")
        if links is None or span["ended_ns"] is None:
            continue  # without the true links, connectivity is unknown, which is not the same as unconnected
        for app in run.apps.values():
            if app.ends.sources and app.ends.sinks:
                between = (*app.ends, span["first_ns"], span["ended_ns"])
                intervals = connected_intervals(read_changes(links), *between)
                rows += [{"run": run.run, "app": app.name, **each._asdict()} for each in intervals]
    return making.frame(rows, CONNECTIVITY.columns)
