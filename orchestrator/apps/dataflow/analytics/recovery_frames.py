"""Finds in Spark the first delivery after each fault; does nothing for runs without faults."""

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from orchestrator.apps.dataflow.analytics.recovery import BEGAN, ENDED, faults_in_window
from orchestrator.results.columns import COUNT, TEXT
from orchestrator.results.spark import Reading

_COLUMNS = {"run": TEXT, "fault": COUNT, "after": TEXT, "since_ns": COUNT}


def frames(reading: Reading) -> Mapping[str, DataFrame]:
    moments = [
        {"run": run.run, "fault": number, "after": after, "since_ns": since_ns}
        for run in reading.runs
        for number, fault in enumerate(faults_in_window(run))
        for after, since_ns in ((BEGAN, fault.from_ns), (ENDED, fault.until_ns))
        if since_ns is not None
    ]
    return {"first": _first_after(reading, moments)} if moments else {}


def _first_after(reading: Reading, moments: list[dict[str, Any]]) -> DataFrame:
    """Returns when the first tuple arrived at each sink that was born after each of ``moments``."""
    after = F.broadcast(reading.frame(moments, _COLUMNS))
    return (
        reading.table("tuples")
        .where("delivered")
        .join(after, "run")
        .where("born_ns >= since_ns")
        .groupBy("run", "app", "sink", "fault", "after")
        .agg(F.min("delivered_ns").alias("first_ns"))
    )
