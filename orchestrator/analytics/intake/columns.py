"""Columns of what the intake keeps: every kind of record, every file of ground truth, boots, bad lines."""

from typing import Any

import msgspec
import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StringType, StructField, StructType

from node_agent.telemetry.records import RecordFormat
from orchestrator.analytics.core import tables
from orchestrator.analytics.intake.rules import fields_of
from orchestrator.analytics.schemas import raw, struct
from orchestrator.results.columns import Columns
from orchestrator.results.truth import columns_of

BOOTS, QUARANTINE = tables.NODES.columns, tables.QUARANTINE.columns
"""A boot of an agent: what its segments hold. A line that enters no other table, and where it is."""

BOOT, BAD = "boots", "quarantine"
"""The names under which they are kept."""


def of_record(kind: str) -> str:
    """Returns the name under which records of this kind are kept."""
    return f"record {kind}"


def of_truth(file: str) -> str:
    """Returns the name under which this file of the ground truth is kept."""
    return f"truth {file}"


def record_columns(format: RecordFormat, *kinds: str) -> StructType:
    """Returns the columns of records of these kinds, for Spark."""
    every = {field.name: field for field in raw(format.events)}
    return StructType([every[name] for name in fields_of(format, *kinds)])


def truth_columns(file: str) -> StructType:
    return StructType([StructField("run", StringType()), *struct(columns_of(file))])


def arrow(columns: StructType | Columns) -> pa.Schema:
    """Returns columns for Arrow."""
    found = columns if isinstance(columns, StructType) else struct(columns)
    return to_arrow_schema(found, timezone="UTC")


def array(values: Any, kind: pa.DataType) -> pa.Array:
    """Returns plain values as a column. Structs become maps of their fields, maps lists of pairs."""
    if pa.types.is_map(kind):
        values = [None if each is None else list(each.items()) for each in values]
    elif pa.types.is_list(kind) and pa.types.is_struct(kind.value_type):
        values = msgspec.to_builtins(values)
    return pa.array(values, kind)
