"""Makes the table of airtimes in Spark, and sums it up by slices of the measured window."""

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from orchestrator.analytics.core.airtime import MOST_SLICES
from orchestrator.results.spark import SUM, Ingest, Reading
from orchestrator.results.truth import AIRTIME

# Ground truth of somebody else's run may contain anything.
POSSIBLE = "t_ns between 0 and 4e18 and sent_ns between 0 and 1e15"


def airtime(ingest: Ingest) -> DataFrame:
    return ingest.truth(AIRTIME).where(POSSIBLE)


def frames(reading: Reading) -> Mapping[str, DataFrame]:
    length = F.col("measure_until_ns") - F.col("measure_from_ns")
    width = F.greatest(F.ceil(length / (MOST_SLICES * 1e9)), F.lit(1)) * 10**9
    # A sample is about the second before it.
    since = F.col("t_ns") - F.col("measure_from_ns") - 1
    return {
        "slices": reading.table("airtime")
        .join(reading.windows, "run")
        .where("t_ns > measure_from_ns and t_ns <= measure_until_ns")
        .groupBy("run", "node", F.floor(since / width).alias("slice"))
        .agg(F.sum(F.col("sent_ns").cast(SUM)).alias("sent_ns"))
    }
