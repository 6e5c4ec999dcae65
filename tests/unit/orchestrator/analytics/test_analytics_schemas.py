"""The columns that the analysis reads are those that agents write; tables are declared as they must be."""

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
from orchestrator.analytics.schemas import raw, spark_type, struct
from orchestrator.results import registry
from orchestrator.results.contribution import Contribution

KINDS = record_format().events
PLAIN: dict[object, DataType] = {
    str: StringType(),
    int: LongType(),
    float: DoubleType(),
    tuple[str, ...]: ArrayType(StringType()),
    tuple[int, ...]: ArrayType(LongType()),
    tuple[tuple[int, ...], ...]: ArrayType(ArrayType(LongType())),
    str | None: StringType(),
    float | None: DoubleType(),
    int | None: LongType(),
    bool: BooleanType(),
    dict[str, float]: MapType(StringType(), DoubleType()),
    tuple[Candidate, ...]: ArrayType(spark_type(Candidate)),
    tuple[FaceRecord, ...]: ArrayType(spark_type(FaceRecord)),
}
COLUMNS = {field.name: field.dataType for field in raw(KINDS)}


@pytest.mark.parametrize("kind", [Envelope, *KINDS], ids=lambda kind: kind.__name__)
def test_every_field_of_a_record_has_its_column(kind: type[Event]) -> None:
    for field in msgspec.structs.fields(kind):
        assert COLUMNS[field.name] == PLAIN[field.type]


@pytest.mark.parametrize("part", [Candidate, FaceRecord])
def test_a_part_of_a_record_has_the_columns_that_agents_write(part: type[msgspec.Struct]) -> None:
    columns = spark_type(part)
    assert isinstance(columns, StructType)
    written = {field.name: PLAIN[field.type] for field in msgspec.structs.fields(part)}
    assert written == {field.name: field.dataType for field in columns}


def test_there_is_no_column_that_nobody_writes() -> None:
    kinds: list[type[msgspec.Struct]] = [Envelope, *KINDS]
    written = {field.name for kind in kinds for field in msgspec.structs.fields(kind)}
    assert written == set(COLUMNS)


def test_a_field_has_one_type_in_all_kinds() -> None:
    class Other(Event, tag="other", frozen=True):
        tau: str

    with pytest.raises(TypeError, match="'tau'"):
        raw((*KINDS, Other))


@pytest.mark.parametrize("name", list(registry.ANALYTICS))
def test_every_table_is_partitioned_by_run_and_has_an_order_of_its_own(name: str) -> None:
    contribution: Contribution = registry.ANALYTICS[name]
    for table in contribution.tables:
        columns = struct(table.columns).fieldNames()
        assert "run" in columns
        assert ("app" in columns) >= bool(contribution.kind)
        assert set(table.order) <= set(columns)
