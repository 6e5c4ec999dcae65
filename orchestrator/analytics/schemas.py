"""Defines Spark columns: of raw telemetry as agents write it, and of the declared tables."""

from functools import cache
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DoubleType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from node_agent.model.telemetry import Envelope
from orchestrator.results.columns import (
    COUNT,
    COUNTS,
    FLAG,
    MOMENT,
    REAL,
    REAL_MAP,
    TEXT,
    TEXT_MAP,
    TEXTS,
    Columns,
)

SPARK_TYPES: dict[Any, DataType] = {
    TEXT: StringType(),
    COUNT: LongType(),
    REAL: DoubleType(),
    FLAG: BooleanType(),
    MOMENT: TimestampType(),
    TEXTS: ArrayType(StringType()),
    COUNTS: ArrayType(LongType()),
    TEXT_MAP: MapType(StringType(), StringType()),
    REAL_MAP: MapType(StringType(), DoubleType()),
}
_PLAIN: dict[Any, DataType] = {
    str: StringType(),
    int: LongType(),
    float: DoubleType(),
    bool: BooleanType(),
}


def struct(columns: Columns) -> StructType:
    """Returns declared columns as a Spark struct."""
    return StructType([StructField(name, SPARK_TYPES[kind]) for name, kind in columns.items()])


@cache
def raw(events: tuple[type[msgspec.Struct], ...]) -> StructType:
    """Returns the columns of a line of a segment: the envelope, then the fields of all kinds of records.

    Fields of other kinds are null. A line with ``tuples`` stands for that many tuples: see docs/telemetry.md.
    """
    found: dict[str, DataType] = {}
    for kind in (Envelope, *events):
        for name, hint in get_type_hints(kind).items():
            found.setdefault(name, spark_type(hint))
            if found[name] != spark_type(hint):
                raise TypeError(f"the field {name!r} of {kind} has another type in another kind")
    return StructType([StructField(name, kind) for name, kind in found.items()])


def spark_type(hint: Any) -> DataType:
    """Returns the column type for a record's field of this type."""
    if get_origin(hint) in (Union, UnionType):
        (hint,) = (each for each in get_args(hint) if each is not NoneType)
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (tuple, list):
        return ArrayType(spark_type(arguments[0]))
    if origin is dict:
        return MapType(spark_type(arguments[0]), spark_type(arguments[1]))
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        parts = get_type_hints(hint).items()
        return StructType([StructField(name, spark_type(each)) for name, each in parts])
    return _PLAIN[hint]
