"""The columns that the analysis reads are those that agents write."""

import msgspec
import pytest
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DoubleType,
    LongType,
    MapType,
    StringType,
    StructType,
)

from node_agent.apps.dataflow.faces.events import FaceRecord
from node_agent.apps.dataflow.model.decision import Candidate
from node_agent.apps.records import record_format
from node_agent.model.telemetry import Envelope, Event
from orchestrator.analytics.ingest import ORDER
from orchestrator.analytics.schemas import CANDIDATE, FACE, RAW, TABLES

SPARK_TYPES: dict[object, DataType] = {
    str: StringType(),
    int: LongType(),
    float: DoubleType(),
    tuple[str, ...]: ArrayType(StringType()),
    tuple[int, ...]: ArrayType(LongType()),
    str | None: StringType(),
    float | None: DoubleType(),
    int | None: LongType(),
    bool: BooleanType(),
    dict[str, float]: MapType(StringType(), DoubleType()),
    tuple[Candidate, ...]: ArrayType(CANDIDATE),
    tuple[FaceRecord, ...]: ArrayType(FACE),
}
KINDS = record_format().events
COLUMNS = {field.name: field.dataType for field in RAW}


@pytest.mark.parametrize("kind", [Envelope, *KINDS], ids=lambda kind: kind.__name__)
def test_every_field_of_a_record_has_its_column(kind: type[Event]) -> None:
    for field in msgspec.structs.fields(kind):
        assert COLUMNS[field.name] == SPARK_TYPES[field.type]


@pytest.mark.parametrize(("part", "columns"), [(Candidate, CANDIDATE), (FaceRecord, FACE)])
def test_a_part_of_a_record_has_the_columns_that_agents_write(
    part: type[msgspec.Struct], columns: StructType
) -> None:
    written = {field.name: SPARK_TYPES[field.type] for field in msgspec.structs.fields(part)}
    assert written == {field.name: field.dataType for field in columns}


def test_there_is_no_column_that_nobody_writes() -> None:
    kinds: list[type[msgspec.Struct]] = [Envelope, *KINDS]
    written = {field.name for kind in kinds for field in msgspec.structs.fields(kind)}
    assert written == set(COLUMNS)


def test_every_table_is_partitioned_by_run_and_has_an_order_of_its_own() -> None:
    assert ORDER.keys() == TABLES.keys()
    for name, schema in TABLES.items():
        assert "run" in schema.fieldNames()
        assert set(ORDER[name]) <= set(schema.fieldNames())
