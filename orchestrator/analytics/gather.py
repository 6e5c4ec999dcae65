"""Collects several small results in one Spark job, because starting a job takes longer than computing any of
them.
"""

import json
from collections.abc import Mapping
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

Rows = list[dict[str, Any]]


def gather(frames: Mapping[str, DataFrame]) -> dict[str, Rows]:
    """Returns the rows of each frame, in no order. Numbers stay exact: JSON keeps all their digits."""
    packed = [
        frame.select(F.lit(name).alias("name"), F.to_json(F.struct("*"), {"ignoreNullFields": "false"}))
        for name, frame in frames.items()
    ]
    rows: dict[str, Rows] = {name: [] for name in frames}
    for name, row in reduce(DataFrame.union, packed).collect():
        rows[name].append(json.loads(row))
    return rows
