"""Columns of what the intake keeps: every kind of record, every file of ground truth, boots, bad lines."""

from collections.abc import Mapping
from typing import Any

import msgspec
import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StringType, StructField, StructType

from node_agent.telemetry.records import RecordFormat
from orchestrator.analytics.core import tables
from orchestrator.analytics.schemas import raw, struct
from orchestrator.results.columns import Columns
from orchestrator.results.truth import TRUTH, columns_of

INTAKE_VERSION = 2
"""Part of the stamp of what was read. Raise it when records are read or judged in another way."""

ENVELOPE = ("run", "node", "boot", "app", "seq", "t_ns", "kind")

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


def fields_of(format: RecordFormat, *kinds: str) -> tuple[str, ...]:
    """Returns the columns of records of these kinds: the envelope, then what at least one of them has."""
    own = (name for name, having in format.kinds_with.items() if any(kind in having for kind in kinds))
    return (*ENVELOPE, *own)


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


def stamp(format: RecordFormat) -> str:
    """Returns a text that changes when what is kept of a run would."""
    kinds: Mapping[str, tuple[str, ...]] = {kind: fields_of(format, kind) for kind in format.needed}
    rules = (format.bounds, format.needed, format.counted, format.rows, format.rules)
    return f"{INTAKE_VERSION} {sorted(kinds.items())} {rules} {[columns_of(file) for file in TRUTH]}"
