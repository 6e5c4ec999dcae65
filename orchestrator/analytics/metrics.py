"""The figures of a run, computed in Spark over its tables. Equal telemetry gives equal figures, bit for bit.

The *measured window* is from ``measure_from_ns`` (after warm-up) to ``measure_until_ns``.

- ``emitted``, ``delivered``, ``duplicates``, ``fates``, latency, loss: of the tuples born in the window,
  whenever they arrived. A tuple owes a delivery to every sink that its stream leads to: ``emitted`` counts
  tuples, all others count deliveries, which with one sink is the same. ``delivered`` counts a tuple once a
  sink; ``duplicates`` are its further arrivals there.
- ``lost``: neither delivered nor ``in_flight_at_end`` nor ``filtered`` or ``absorbed`` by an operator (see
  ``tables.tuples``); ``loss_ratio`` is lost / (owed - in flight - filtered or absorbed).
- ``sinks``: only of queries with several: ``owed`` and the figures above and below for each of them.
- ``throughput_fps``, ``throughput_kbps``: tuples and payload (10³ bit) per second that arrived at sinks after
  the first arrival in the window, up to the last one in it, over the time between the two; 0 with fewer
  than two arrivals. ``goodput_fps``: arrivals in the window over its whole length, outages included.
- ``latency_*_s``: arrival minus capture at the source; percentiles are exact, interpolated between values.
- ``switches``: how often in the window a replica took another replica downstream than it had used before;
  only of replicas that emitted or received a tuple in the window. Others decide too, but move nothing.
- ``no_route_s``: time in the window in which a source had no route, summed over sources and their outputs.
- ``source_sink_connected_ratio``: share of the window in which, by ground truth, every source had a path to a
  sink.
- ``routing_overhead``, ``routing_overhead_bps``: what routing daemons put on the air, in bit/s per node, by
  kind of message (own and forwarded) and in all; from the counters' last samples before the window to the
  first ones after it. With them what agents tell each other; where that alone is counted, there is no sum.
- ``detection_rate``, ``rank1``, ``false_accept_rate``, ``faces``: only of queries that report faces; of the
  frames taken in the window that arrived. Shares of the faces shown that were found, of known persons found
  that got their own name, of strangers found that got anybody's; and the counts behind them (see ``faces``).

What cannot be told is None. Beside the metrics stand ``operator_faults``: how often in the whole run
operators met with what they could not use and went on, by kind.
"""

from collections.abc import Sequence
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from node_agent.apps.dataflow.wire.notices import MESSAGE as AGENTS_OWN
from orchestrator.analytics import faces
from orchestrator.analytics.gather import Rows, gather
from orchestrator.analytics.inputs import RunInput
from orchestrator.analytics.store import TableStore
from orchestrator.analytics.tables import NEVER_EMITTED, SUM
from orchestrator.analytics.tuple_figures import (
    Figures,
    Row,
    arrival_figures,
    arrived_in_window,
    born_in_window,
    by_sink,
    counted_fates,
    distinct,
    fates_of,
    inside,
    latency_figures,
    quantiles_s,
    rounded,
    tuple_figures,
    unfounded,
    window_of,
)

LOG_FIGURES = ("boots", "incomplete_boots", "records", "missing", "duplicates", "corrupt_lines", "refused")
READ_FIGURES = ("records", "corrupt_lines", "refused")


def measure(spark: SparkSession, store: TableStore, inputs: Sequence[RunInput]) -> dict[str, dict[str, Any]]:
    """For each run: ``metrics``, ``operator_faults``, how complete its ``telemetry`` is, what was read of its
    ``nodes``, and quantiles."""
    names = [run.run for run in inputs]
    runs = store.read(spark, "runs", names)
    windows = F.broadcast(runs.select("run", "measure_from_ns", "measure_until_ns"))
    tuples = store.read(spark, "tuples", names)
    several = [run for run in inputs if len(run.plan.query.sinks()) > 1]
    of_several = tuples.where(F.col("run").isin([run.run for run in several]))
    switches = store.read(spark, "switches", names)
    hops = store.read(spark, "hops", names)
    at_sinks = {
        "born at": born_in_window(of_several, "sink"),
        "arrived at": arrived_in_window(of_several, windows, "sink"),
        "fates at": fates_of(of_several, "sink"),
        "distinct": distinct(of_several),
    }
    rows = gather(
        {
            **(at_sinks if several else {}),
            "unfounded": unfounded(tuples),
            "born": born_in_window(tuples),
            "arrived": arrived_in_window(tuples, windows),
            "fates": fates_of(tuples),
            "switched": _switched(switches, _carriers(tuples, hops, windows)),
            "unrouted": _without_route(switches, runs),
            "connected": _connected(store.read(spark, "connectivity", names), windows),
            "overhead": _overhead(store.read(spark, "overhead", names), windows),
            "logs": _completeness(store.read(spark, "nodes", names)),
            "read": _read_of_nodes(store.read(spark, "nodes", names)),
            "passed_over": _passed_over(store.read(spark, "operator_faults", names)),
            "faces": faces.counted(store.read(spark, "faces", names)),
        }
    )
    sinks = by_sink({name: rows.pop(name) for name in at_sinks if several}, several)
    fates = counted_fates(rows.pop("fates"), "run")
    overhead = _overhead_by_run(rows.pop("overhead"))
    passed_over = _passed_over_by_run(rows.pop("passed_over"))
    seen = faces.by_run(rows.pop("faces"))
    read = rows.pop("read")
    of = {name: {row["run"]: row for row in found} for name, found in rows.items()}
    born, arrived, switched = of["born"], of["arrived"], of["switched"]
    unrouted, connected, logs = of["unrouted"], of["connected"], of["logs"]
    return {
        run.run: {
            "metrics": {
                **tuple_figures(born.get(run.run), fates.get((run.run,), {})),
                **arrival_figures(arrived.get(run.run), window_of(run)),
                **latency_figures(born.get(run.run)),
                "switches": switched[run.run]["switches"] if run.run in switched else 0,
                "no_route_s": _no_route_s(unrouted.get(run.run), run),
                "source_sink_connected_ratio": _ratio_of_window(connected.get(run.run), run),
                **_overhead_figures(overhead.get(run.run)),
                **(faces.figures(run, seen.get(run.run, [])) if faces.has_faces(run) else {}),
                **sinks.get(run.run, {}),
            },
            "operator_faults": passed_over.get(run.run, {}),
            "telemetry": {
                **{name: logs[run.run][name] if run.run in logs else 0 for name in LOG_FIGURES},
                NEVER_EMITTED: of["unfounded"].get(run.run, {"tuples": 0})["tuples"],
            },
            "nodes": {
                row["node"]: {name: row[name] for name in READ_FIGURES}
                for row in sorted(read, key=lambda row: str(row["node"]))
                if row["run"] == run.run
            },
            "latency_quantiles_s": quantiles_s(born.get(run.run)),
        }
        for run in inputs
    }


def _carriers(tuples: DataFrame, hops: DataFrame, windows: DataFrame) -> DataFrame:
    """The replicas that emitted or received a tuple in the window."""
    emitted = tuples.select("run", F.col("origin").alias("replica"), F.col("emitted_ns").alias("t_ns"))
    received = hops.select("run", F.col("receiver").alias("replica"), F.col("received_ns").alias("t_ns"))
    moved = emitted.union(received).join(windows, "run").where(inside("t_ns"))
    return moved.select("run", "replica").distinct()


def _switched(switches: DataFrame, carriers: DataFrame) -> DataFrame:
    counted = switches.where("in_window and changed").join(carriers, ["run", "replica"], "left_semi")
    return counted.groupBy("run").agg(F.count("*").alias("switches"))


def _overlap(begin: Column, end: Column) -> Column:
    """How much of the time from ``begin`` to ``end`` (null: without end) lies in the window."""
    until = F.least(F.coalesce(end, F.col("measure_until_ns")), F.col("measure_until_ns"))
    since = F.greatest(F.coalesce(begin, F.col("measure_from_ns")), F.col("measure_from_ns"))
    return F.greatest(until - since, F.lit(0))


def _without_route(switches: DataFrame, runs: DataFrame) -> DataFrame:
    """Each change ends the time of ``old`` and begins that of ``new``; null means that there was no route."""
    sources = runs.select("run", "measure_from_ns", "measure_until_ns", F.explode("sources").alias("replica"))
    in_order = Window.partitionBy("run", "replica", "downstream").orderBy("t_ns")
    before, after = F.lag("t_ns").over(in_order), F.lead("t_ns").over(in_order)
    return (
        switches.join(F.broadcast(sources), ["run", "replica"])
        .withColumns({"before": before, "after": after})
        .withColumn(
            "ended", F.when(F.col("old").isNull(), _overlap(F.col("before"), F.col("t_ns"))).otherwise(0)
        )
        .withColumn("lasts", F.col("after").isNull() & F.col("new").isNull())
        .withColumn("began", F.when(F.col("lasts"), _overlap(F.col("t_ns"), F.col("after"))).otherwise(0))
        .groupBy("run")
        .agg(
            F.sum(F.col("ended") + F.col("began")).alias("no_route_ns"),
            F.countDistinct("replica", "downstream").alias("outputs"),
        )
    )


def _connected(connectivity: DataFrame, windows: DataFrame) -> DataFrame:
    inside = _overlap(F.col("from_ns"), F.col("until_ns"))
    return (
        connectivity.join(windows, "run")
        .groupBy("run")
        .agg(F.sum(F.when(F.col("connected"), inside).otherwise(0)).alias("connected_ns"))
    )


def _overhead(samples: DataFrame, windows: DataFrame) -> DataFrame:
    """Bit/s of each kind of message, the mean over nodes; a node that never sent one counts with 0."""
    counter, t_ns = Window.partitionBy("run", "node", "message"), F.col("t_ns")
    before = F.max(F.when(t_ns <= F.col("measure_from_ns"), t_ns)).over(counter)
    after = F.min(F.when(t_ns >= F.col("measure_until_ns"), t_ns)).over(counter)

    def grown(name: str) -> Column:
        """Since the sample before. Who was started anew counts from 0 again."""
        now, earlier = F.col(name), F.lag(name).over(counter.orderBy("t_ns"))
        return F.when(now >= earlier, now - earlier).otherwise(now)

    spans = (
        samples.join(windows, "run")
        .withColumns(
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
        # In an order of its own: sums of fractions depend on theirs.
        rates = F.array_sort(F.collect_list(8 * F.col(name) / F.col("seconds")))
        return F.aggregate(rates, F.lit(0.0), lambda total, each: total + each)

    return (
        spans.groupBy("run", "message")
        .agg(rate("sent").alias("sent"), rate("forwarded").alias("forwarded"))
        .join(nodes, "run")
    )


def _overhead_by_run(counted: Rows) -> dict[str, dict[str, dict[str, float]]]:
    overhead: dict[str, dict[str, dict[str, float]]] = {}
    for row in sorted(counted, key=lambda row: (row["run"], row["message"])):
        rates = {f"{name}_bps": rounded(row[name] / row["nodes"]) for name in ("sent", "forwarded")}
        overhead.setdefault(row["run"], {})[row["message"]] = rates
    return overhead


def _overhead_figures(overhead: dict[str, dict[str, float]] | None) -> Figures:
    if overhead is None:
        return {"routing_overhead": {}, "routing_overhead_bps": None}
    if not any(message != AGENTS_OWN for message in overhead):  # of the daemon nothing is known
        return {"routing_overhead": overhead, "routing_overhead_bps": None}
    total = sum(rate for message in overhead.values() for rate in message.values())
    return {"routing_overhead": overhead, "routing_overhead_bps": rounded(total)}


def _passed_over(faults: DataFrame) -> DataFrame:
    """By kind: what stands before the colon; the rest says how it was each time."""
    kind = F.substring_index("reason", ":", 1).alias("kind")
    # Each replica counts on its own, from 1 again after a restart; the next record makes up for a lost one.
    counted = faults.groupBy("run", "replica", "node", "boot", kind).agg(F.max("count").alias("times"))
    return counted.groupBy("run", "kind").agg(F.sum(F.col("times").cast(SUM)).alias("times"))


def _passed_over_by_run(counted: Rows) -> dict[str, dict[str, int]]:
    times: dict[str, dict[str, int]] = {}
    for row in sorted(counted, key=lambda row: (row["run"], row["kind"])):
        times.setdefault(row["run"], {})[row["kind"]] = row["times"]
    return times


def _completeness(nodes: DataFrame) -> DataFrame:
    return nodes.groupBy("run").agg(
        F.count("*").alias("boots"),
        F.count(F.when(~F.col("complete"), True)).alias("incomplete_boots"),
        *(F.sum(F.col(name).cast(SUM)).alias(name) for name in LOG_FIGURES[2:]),
    )


def _read_of_nodes(nodes: DataFrame) -> DataFrame:
    sums = (F.sum(F.col(name).cast(SUM)).alias(name) for name in READ_FIGURES)
    return nodes.groupBy("run", "node").agg(*sums)


def _no_route_s(unrouted: Row | None, run: RunInput) -> float:
    """An output that never reported a choice never had a route."""
    query = run.plan.query
    outputs = sum(len(run.plan.of(name)) * len(query.downstream(name)) for name in query.sources())
    reported = unrouted["outputs"] if unrouted else 0
    known_ns = unrouted["no_route_ns"] if unrouted else 0
    return rounded((known_ns + max(outputs - reported, 0) * window_of(run)) / 1e9)


def _ratio_of_window(connected: Row | None, run: RunInput) -> float | None:
    window_ns = window_of(run)
    return rounded(connected["connected_ns"] / window_ns) if connected and window_ns else None
