"""Makes the table of paths: follows each delivered tuple back from its sink, hop by hop."""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from orchestrator.apps.dataflow.analytics.tuple_table import tuple_by_tuple
from orchestrator.results.inputs import RunInput
from orchestrator.results.spark import Ingest, in_window

TUPLE = ("run", "app", "origin", "tau")
MOST_STEPS = 32
PASSED_ON = 2
"""Steps beyond the operators of a query: a replica may pass parts of a window on to a sibling."""
_ACCUMULATED = (
    "struct<at string, until bigint, path array<string>, network_ns array<bigint>, queue_ns array<bigint>, "
    "compute_ns array<bigint>>"
)


def paths(ingest: Ingest) -> DataFrame:
    """Returns the table. Of several arrivals at a replica or a sink, the first counts: what comes later is a
    duplicate.

    The time between two records is divided without rest. From birth or reception to the next sending, a tuple
    was in a replica: ``took_ns`` of that in its operator, the rest in its queues. From sending to reception,
    it was on the network.
    """
    way = F.aggregate(
        F.sequence(F.lit(1), F.lit(_steps(ingest.runs))),
        F.struct(
            F.col("replica").alias("at"),
            F.col("t_ns").alias("until"),
            *(F.array().alias(name) for name in ("path", "network_ns", "queue_ns", "compute_ns")),
        ).cast(_ACCUMULATED),
        _step_back,
    )
    spent = F.flatten(F.array(*(f"way.{part}_ns" for part in ("network", "queue", "compute"))))
    first = F.get("path", F.lit(0))
    begins = (first == F.col("origin")) | (operator_in(first) == F.col("origin"))
    whole = F.col("way.at").isNull() & begins & F.forall(spent, lambda each: each.isNotNull())
    walked = (
        ingest.timed(_delivered(ingest.records("tuple_delivered")))
        .join(_steps_of(ingest.table("hops"), ingest.records("tuple_processed")), list(TUPLE), "left")
        .withColumn("steps", F.coalesce("steps", F.array().cast(_STEPS)))
        .withColumn("way", way)
    )
    return walked.withColumn("path", F.col("way.path")).withColumns(
        {
            **{name: F.col(f"way.{name}") for name in ("network_ns", "queue_ns", "compute_ns")},
            "latency_ns": F.col("t_ns") - F.col("born_ns"),
            "complete": F.coalesce(whole, F.lit(False)),
            "in_window": in_window("born_ns"),
        }
    )


_STEPS = "array<struct<t_ns bigint, at string, sender string, sent_ns bigint, took_ns bigint>>"


def _steps(runs: Sequence[RunInput]) -> int:
    """Returns how many replicas a path can have at most."""
    sizes = [len(app.plan.query.names()) for run in runs for app in run.apps.values() if app.kind == "query"]
    return min(max(sizes, default=1) + PASSED_ON, MOST_STEPS)


def operator_in(replica: Column) -> Column:
    """Returns the operator that a replica's id names."""
    return F.regexp_replace(replica, "/[^/]*$", "")


def _delivered(deliveries: DataFrame) -> DataFrame:
    """Returns the first arrival of each tuple at each sink: ``t_ns``, ``replica`` and ``born_ns``."""
    arrivals = tuple_by_tuple(deliveries)
    first = F.min(F.struct("t_ns", "replica", "born_ns")).alias("first")
    return (
        arrivals.groupBy(*TUPLE, operator_in(F.col("replica")).alias("sink"))
        .agg(first)
        .select(*TUPLE, "sink", "first.*")
    )


def _steps_of(hops: DataFrame, processings: DataFrame) -> DataFrame:
    """Returns for each tuple what happened to it at replicas, in the order of time."""
    received = hops.where("received_ns is not null").select(
        *TUPLE,
        F.col("received_ns").alias("t_ns"),
        F.col("receiver").alias("at"),
        "sender",
        "sent_ns",
        F.lit(None).cast("long").alias("took_ns"),
    )
    nothing = (F.lit(None).cast("string").alias("sender"), F.lit(None).cast("long").alias("sent_ns"))
    processed = tuple_by_tuple(processings).select(
        *TUPLE, "t_ns", F.col("replica").alias("at"), *nothing, "took_ns"
    )
    step = F.struct("t_ns", "at", "sender", "sent_ns", "took_ns")
    steps = received.union(processed).groupBy(*TUPLE).agg(F.collect_list(step).alias("steps"))
    return steps.withColumn("steps", F.array_sort("steps"))


def _step_back(walked: Column, _: Column) -> Column:
    """Goes from the replica ``at`` to the one that sent the tuple there. ``until``: when it left ``at``. What
    came there later is a duplicate; if nothing came before, the record of that is lost.
    """
    at, until = walked["at"], walked["until"]
    here = F.filter(F.col("steps"), lambda step: step["at"] == at)
    came = F.filter(
        here, lambda step: step["sender"].isNotNull() & F.coalesce(step["t_ns"] <= until, F.lit(True))
    )
    arrival = F.get(came, F.lit(0))
    took = F.get(F.filter(here, lambda step: step["took_ns"].isNotNull()), F.lit(0))["took_ns"]
    computing = F.coalesce(took, F.lit(0).cast("long"))
    since = F.coalesce(arrival["t_ns"], F.col("born_ns"))
    network = F.when(arrival.isNull(), F.lit(0).cast("long")).otherwise(arrival["t_ns"] - arrival["sent_ns"])

    def before(value: Column, name: str) -> Column:
        return F.concat(F.array(value), walked[name]).alias(name)

    further = F.struct(
        arrival["sender"].alias("at"),
        arrival["sent_ns"].alias("until"),
        before(at, "path"),
        before(network, "network_ns"),
        before(until - since - computing, "queue_ns"),
        before(computing, "compute_ns"),
    )
    return F.when(at.isNull(), walked).otherwise(further).cast(_ACCUMULATED)
