"""The columns that the analysis reads are those that agents write."""

import msgspec
import pytest
from pyspark.sql.types import ArrayType, DataType, DoubleType, LongType, StringType

from node_agent.model.telemetry import KINDS, Envelope, Event
from orchestrator.analytics.ingest import ORDER
from orchestrator.analytics.schemas import RAW, TABLES

SPARK_TYPES: dict[object, DataType] = {
    str: StringType(),
    int: LongType(),
    float: DoubleType(),
    tuple[str, ...]: ArrayType(StringType()),
    str | None: StringType(),
    float | None: DoubleType(),
}
COLUMNS = {field.name: field.dataType for field in RAW}


@pytest.mark.parametrize("kind", [Envelope, *KINDS], ids=lambda kind: kind.__name__)
def test_every_field_of_a_record_has_its_column(kind: type[Event]) -> None:
    for field in msgspec.structs.fields(kind):
        assert COLUMNS[field.name] == SPARK_TYPES[field.type]


def test_there_is_no_column_that_nobody_writes() -> None:
    kinds: list[type[msgspec.Struct]] = [Envelope, *KINDS]
    written = {field.name for kind in kinds for field in msgspec.structs.fields(kind)}
    assert written == set(COLUMNS)


def test_every_table_is_partitioned_by_run_and_has_an_order_of_its_own() -> None:
    assert ORDER.keys() == TABLES.keys()
    for name, schema in TABLES.items():
        assert "run" in schema.fieldNames()
        assert set(ORDER[name]) <= set(schema.fieldNames())
