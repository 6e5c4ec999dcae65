"""Chooses in Spark the cost samples that ``cost_truth`` compares with the true links."""

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from orchestrator.apps.dataflow.analytics.cost_truth import ETX, GOLDEN, HOPS, MOST_SECONDS
from orchestrator.apps.dataflow.analytics.tuple_figures import inside
from orchestrator.results.spark import Reading


def frames(reading: Reading) -> Mapping[str, DataFrame]:
    known = [run.run for run in reading.runs if run.truth("links.jsonl") is not None]
    if not known:
        return {}
    length = F.col("measure_until_ns") - F.col("measure_from_ns")
    second = F.floor((F.col("t_ns") - F.col("measure_from_ns")) / 1e9)
    chosen = (
        reading.table("costs")
        .where(F.col("run").isin(known) & F.col("metric").isin(ETX, HOPS))
        .join(reading.windows, "run")
        .where(inside("t_ns"))
        .where((second * GOLDEN) % 1 < MOST_SECONDS * 1e9 / length)
    )
    return {"samples": chosen.select("run", "app", "t_ns", "replica", "to", "cost", "metric")}
