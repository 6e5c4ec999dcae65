"""Collects several small results in one Spark job, because starting a job takes longer than computing any of
them.
"""

import json
from collections.abc import Mapping
from functools import reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

Rows = list[dict[str, Any]]


def gather(frames: Mapping[str, DataFrame | pa.Table]) -> dict[str, Rows]:
    """Returns the rows of each frame, in no order."""
    in_spark = {name: frame for name, frame in frames.items() if isinstance(frame, DataFrame)}
    here = {name: frame.to_pylist() for name, frame in frames.items() if isinstance(frame, pa.Table)}
    return {**here, **(_collected(in_spark) if in_spark else {})}


def _collected(frames: Mapping[str, DataFrame]) -> dict[str, Rows]:
    """Numbers stay exact: JSON keeps all their digits."""
    packed = [
        frame.select(
            F.lit(name).alias("name"), F.to_json(F.struct("*"), {"ignoreNullFields": "false"}).alias("row")
        )
        for name, frame in frames.items()
    ]
    found = reduce(DataFrame.union, packed).toArrow()
    texts: dict[str, list[str]] = {name: [] for name in frames}
    for name, text in zip(*(column.to_pylist() for column in found.columns), strict=True):
        texts[name].append(text)
    return {name: json.loads(f"[{','.join(of_frame)}]") for name, of_frame in texts.items()}
