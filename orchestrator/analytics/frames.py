"""Makes small Spark frames from plain rows."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType


def frame_of(spark: SparkSession, rows: Sequence[Mapping[str, Any]], schema: StructType) -> DataFrame:
    """Returns a frame.
    It goes through Arrow, because Spark would start Python processes to copy plain rows.
    """
    table = pa.Table.from_pylist(list(rows), to_arrow_schema(schema, timezone="UTC"))
    return spark.createDataFrame(table, schema)
