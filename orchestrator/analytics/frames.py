"""Makes small Spark frames from plain rows, and adds what is known of each row's run."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

_TIMES = {
    "measure_from_ns": "measure_from_ns",
    "measure_until_ns": "measure_until_ns",
    "first_ns": "zero_ns",
    "ended_ns": "ended_ns",
}
"""Columns of the table ``runs`` that others need, and what they are called there."""


def frame_of(spark: SparkSession, rows: Sequence[Mapping[str, Any]], schema: StructType) -> DataFrame:
    """Returns a frame.
    It goes through Arrow, because Spark would start Python processes to copy plain rows.
    """
    table = pa.Table.from_pylist(list(rows), to_arrow_schema(schema, timezone="UTC"))
    return spark.createDataFrame(table, schema)


def times_of(runs: pa.Table) -> pa.Table:
    """Returns the times of runs, from the table ``runs``."""
    return runs.select(["run", *_TIMES]).rename_columns(["run", *_TIMES.values()])


def with_times(rows: DataFrame, times: pa.Table, windows: Callable[[], DataFrame]) -> DataFrame:
    """Adds the times of its run to each row: as constants if there is one run only, because Spark takes as
    long for a join as for everything else that is done with few rows. ``windows``: the same times in Spark.
    """
    if times.num_rows != 1:
        return rows.join(windows(), "run")
    (known,) = times.drop_columns("run").to_pylist()
    constants = (f"cast({'null' if t is None else t} as bigint) as {name}" for name, t in known.items())
    return rows.selectExpr("*", *constants)
