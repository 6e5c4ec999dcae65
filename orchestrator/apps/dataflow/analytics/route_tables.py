"""Makes the tables of replicas: their choices, the costs they saw, what operators skipped."""

from pyspark.sql import DataFrame

from orchestrator.results.contribution import AsRead
from orchestrator.results.spark import Ingest, inside


def switches(ingest: Ingest) -> DataFrame:
    """Returns the switches. ``changed`` ignores outages: a → none → a is no change of replica, a → none → b
    is one.
    """
    earlier = (
        "partition by run, app, replica, downstream order by t_ns, boot, seq "
        "rows between unbounded preceding and 1 preceding"
    )
    changed = f"coalesce(`new` != coalesce(`old`, last(`new`, true) over ({earlier})), false) as changed"
    return ingest.timed(ingest.records("route_switch")).selectExpr(
        "*", changed, f"{inside('t_ns')} as in_window"
    )


def costs(ingest: Ingest) -> AsRead:
    return AsRead("link_cost")


def operator_faults(ingest: Ingest) -> AsRead:
    return AsRead("operator_fault")
