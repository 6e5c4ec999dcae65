"""Makes the table of paths: follows each delivered tuple back from its sink, hop by hop."""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from orchestrator.apps.dataflow.analytics.tuple_table import tuple_by_tuple
from orchestrator.results.inputs import RunInput
from orchestrator.results.spark import Ingest, inside

TUPLE = ("run", "app", "origin", "tau")
MOST_STEPS = 32
PASSED_ON = 2
"""Steps beyond the operators of a query: a replica may pass parts of a window on to a sibling."""

# As texts, because every part of an expression would be a call of its own to the JVM.
_STEPS = "array<struct<t_ns bigint, at string, sender string, sent_ns bigint, took_ns bigint>>"
_ACCUMULATED = (
    "struct<at string, until bigint, path array<string>, network_ns array<bigint>, queue_ns array<bigint>, "
    "compute_ns array<bigint>>"
)
_BEGINNING = (
    "struct(replica as at, t_ns as until, array() as path, array() as network_ns, array() as queue_ns, "
    "array() as compute_ns)"
)


def paths(ingest: Ingest) -> DataFrame:
    """Returns the table. Of several arrivals at a replica or a sink, the first counts: what comes later is a
    duplicate.

    The time between two records is divided without rest. From birth or reception to the next sending, a tuple
    was in a replica: ``took_ns`` of that in its operator, the rest in its queues. From sending to reception,
    it was on the network.
    """
    numbers = f"sequence(1, {_steps(ingest.runs)})"
    way = f"aggregate({numbers}, cast({_BEGINNING} as {_ACCUMULATED}), (walked, number) -> {_step_back()})"
    spent = "flatten(array(way.network_ns, way.queue_ns, way.compute_ns))"
    first = "get(way.path, 0)"
    begins = f"({first} = origin or regexp_replace({first}, '{_NUMBER}', '') = origin)"
    whole = f"way.at is null and {begins} and forall({spent}, each -> each is not null)"
    return (
        ingest.timed(_delivered(ingest.records("tuple_delivered")))
        .join(_steps_of(ingest.table("hops"), ingest.records("tuple_processed")), list(TUPLE), "left")
        .withColumn("steps", F.expr(f"coalesce(steps, cast(array() as {_STEPS}))"))
        .withColumn("way", F.expr(way))
        .selectExpr(
            *TUPLE,
            "sink",
            *(f"way.{name} as {name}" for name in ("path", "network_ns", "queue_ns", "compute_ns")),
            "t_ns - born_ns as latency_ns",
            f"coalesce({whole}, false) as complete",
            f"{inside('born_ns')} as in_window",
        )
    )


def _steps(runs: Sequence[RunInput]) -> int:
    """Returns how many replicas a path can have at most."""
    sizes = [len(app.plan.query.names()) for run in runs for app in run.apps.values() if app.kind == "query"]
    return min(max(sizes, default=1) + PASSED_ON, MOST_STEPS)


_NUMBER = "/[^/]*$"
"""What a replica's id has behind the name of its operator."""


def operator_in(replica: Column) -> Column:
    """Returns the operator that a replica's id names."""
    return F.regexp_replace(replica, _NUMBER, "")


def _delivered(deliveries: DataFrame) -> DataFrame:
    """Returns the first arrival of each tuple at each sink: ``t_ns``, ``replica`` and ``born_ns``."""
    arrivals = tuple_by_tuple(deliveries)
    return (
        arrivals.groupBy(*TUPLE, operator_in(F.col("replica")).alias("sink"))
        .agg(F.expr("min(struct(t_ns, replica, born_ns)) as first"))
        .selectExpr(*TUPLE, "sink", "first.*")
    )


def _steps_of(hops: DataFrame, processings: DataFrame) -> DataFrame:
    """Returns for each tuple what happened to it at replicas, in the order of time."""
    received = hops.where("received_ns is not null").selectExpr(
        *TUPLE,
        "received_ns as t_ns",
        "receiver as at",
        "sender",
        "sent_ns",
        "cast(null as bigint) as took_ns",
    )
    nothing = ("cast(null as string) as sender", "cast(null as bigint) as sent_ns")
    processed = tuple_by_tuple(processings).selectExpr(*TUPLE, "t_ns", "replica as at", *nothing, "took_ns")
    steps = "array_sort(collect_list(struct(t_ns, at, sender, sent_ns, took_ns)))"
    return received.union(processed).groupBy(*TUPLE).agg(F.expr(f"{steps} as steps"))


def _step_back() -> str:
    """Returns the step from the replica ``walked.at`` to the one that sent the tuple there. ``until``: when
    it left ``at``. What came there later is a duplicate; if nothing came before, the record of that is lost.

    An operator that moves records a reception once its result counts. So its time in the operator (``early``)
    came before, and is no time on the network.
    """
    here = "filter(steps, step -> step.at = walked.at)"
    came = f"filter({here}, step -> step.sender is not null and coalesce(step.t_ns <= walked.until, true))"
    arrival = f"get({came}, 0)"
    took = f"get(filter({here}, step -> step.took_ns is not null), 0).took_ns"
    computing = f"coalesce({took}, 0L)"
    since = f"coalesce({arrival}.t_ns, born_ns)"
    early = f"greatest(0L, {computing} - (walked.until - {since}))"
    network = f"case when {arrival} is null then 0L else {arrival}.t_ns - {arrival}.sent_ns - {early} end"
    queue = f"case when {arrival} is null then 0L else {early} end + walked.until - {since} - {computing}"
    spent = {
        "path": "walked.at",
        "network_ns": network,
        "queue_ns": queue,
        "compute_ns": computing,
    }
    before = ", ".join(f"concat(array({value}), walked.{name}) as {name}" for name, value in spent.items())
    further = f"struct({arrival}.sender as at, {arrival}.sent_ns as until, {before})"
    return f"cast(case when walked.at is null then walked else {further} end as {_ACCUMULATED})"
