"""Types of a table's columns, without Spark: ``analytics.schemas`` turns them into Spark's."""

from collections.abc import Mapping
from enum import Enum


class ColumnType(Enum):
    """One of the types that a column of a table can have."""

    TEXT = "text"
    COUNT = "64-bit integer"
    REAL = "floating point"
    FLAG = "true or false"
    MOMENT = "time stamp"
    TEXTS = "list of texts"
    COUNTS = "list of integers"
    TEXT_MAP = "text by text"
    REAL_MAP = "floating point by text"


TEXT, COUNT, REAL, FLAG = ColumnType.TEXT, ColumnType.COUNT, ColumnType.REAL, ColumnType.FLAG
MOMENT, TEXTS, COUNTS = ColumnType.MOMENT, ColumnType.TEXTS, ColumnType.COUNTS
TEXT_MAP, REAL_MAP = ColumnType.TEXT_MAP, ColumnType.REAL_MAP

Columns = Mapping[str, ColumnType]
