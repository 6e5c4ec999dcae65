"""Finds in Spark the first delivery after each fault; does nothing for runs without faults."""

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from orchestrator.apps.dataflow.analytics.recovery import faults_in_window
from orchestrator.results.columns import COUNT, TEXT
from orchestrator.results.spark import Reading

_COLUMNS = {"run": TEXT, "fault": COUNT, "since_ns": COUNT}


def frames(reading: Reading) -> Mapping[str, DataFrame]:
    began: list[dict[str, Any]] = []
    ended: list[dict[str, Any]] = []
    for run in reading.runs:
        for number, fault in enumerate(faults_in_window(run)):
            began.append({"run": run.run, "fault": number, "since_ns": fault.from_ns})
            if fault.until_ns is not None:
                ended.append({"run": run.run, "fault": number, "since_ns": fault.until_ns})
    found = {"began": began, "ended": ended}
    return {name: _first_after(reading, moments) for name, moments in found.items() if moments}


def _first_after(reading: Reading, moments: list[dict[str, Any]]) -> DataFrame:
    """Returns when the first tuple arrived at each sink that was born after each of ``moments``."""
    after = F.broadcast(reading.frame(moments, _COLUMNS))
    return (
        reading.table("tuples")
        .where("delivered")
        .join(after, "run")
        .where("born_ns >= since_ns")
        .groupBy("run", "app", "sink", "fault")
        .agg(F.min("delivered_ns").alias("first_ns"))
    )
