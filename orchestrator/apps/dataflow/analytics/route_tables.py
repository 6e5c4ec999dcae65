"""Makes the tables of replicas: their choices, the costs they saw, what operators skipped."""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from orchestrator.results.contribution import AsRead
from orchestrator.results.spark import Ingest, in_window


def switches(ingest: Ingest) -> DataFrame:
    """Returns the switches. ``changed`` ignores outages: a → none → a is no change of replica, a → none → b
    is one.
    """
    earlier = (
        Window.partitionBy("run", "app", "replica", "downstream")
        .orderBy("t_ns", "boot", "seq")
        .rowsBetween(Window.unboundedPreceding, -1)
    )
    used_before = F.coalesce("old", F.last("new", ignorenulls=True).over(earlier))
    changed = F.coalesce(F.col("new") != used_before, F.lit(False))
    switches = ingest.timed(ingest.records("route_switch"))
    return switches.withColumns({"changed": changed, "in_window": in_window("t_ns")})


def costs(ingest: Ingest) -> AsRead:
    return AsRead("link_cost")


def operator_faults(ingest: Ingest) -> AsRead:
    return AsRead("operator_fault")
