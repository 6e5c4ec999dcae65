"""Tables that are as they were read: the rows of the wanted runs, in order, in bounded files."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyarrow import parquet

from orchestrator.analytics import as_read
from orchestrator.analytics.as_read import source_of, write_as_read
from orchestrator.analytics.core.airtime import AIRTIME
from orchestrator.analytics.core.tables import DELIVERIES, LINKS_TRUTH, POSITIONS
from orchestrator.results.columns import COUNT, TEXT
from orchestrator.results.contribution import AsRead, Table

TABLE = Table("seen", "something", {"run": TEXT, "at": COUNT, "node": TEXT}, ("at", "node"), lambda _: None)
MADE = AsRead("seen", names={"at": "t_ns"}, where=lambda rows: pc.greater(rows["t_ns"], 0))


def stored(path: Path, rows: list[tuple[str, int | None, str]], group: int = 3) -> Path:
    columns = [pa.array([row[place] for row in rows]) for place in range(3)]
    parquet.write_table(pa.table(columns, ["run", "t_ns", "node"]), path, row_group_size=group)
    return path


def written(files: list[Path]) -> list[list[tuple[Any, ...]]]:
    tables = [parquet.read_table(file, partitioning=None) for file in files]
    return [list(zip(*(column.to_pylist() for column in table.columns), strict=True)) for table in tables]


def test_rows_of_the_wanted_runs_in_order(tmp_path: Path) -> None:
    rows = [("a", t, n) for t in (5, 0, None, 4, 3) for n in ("y", "x")]
    first = stored(tmp_path / "1.parquet", [*rows, ("b", 1, "z"), ("c", 2, "z"), ("c", 1, "z")])
    second = stored(tmp_path / "2.parquet", [("c", 9, "z"), ("b", 7, "z")])
    (found,) = written(write_as_read([first, second], ["a", "c"], TABLE, MADE, tmp_path))
    of_a = [("a", t, n) for t in (3, 4, 5) for n in ("x", "y")]
    assert found == [*of_a, ("c", 1, "z"), ("c", 2, "z"), ("c", 9, "z")]


def test_nothing_is_no_file(tmp_path: Path) -> None:
    file = stored(tmp_path / "1.parquet", [("b", 1, "z")])
    assert write_as_read([file], ["a"], TABLE, MADE, tmp_path) == []
    assert write_as_read([], ["a"], TABLE, MADE, tmp_path) == []


def test_files_stay_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(as_read, "GROUP_ROWS", 2)
    monkeypatch.setattr(as_read, "MOST_ROWS", 4)
    file = stored(tmp_path / "1.parquet", [(run, t, "x") for run in "abc" for t in (2, 1, 3)])
    found = written(write_as_read([file], ["a", "b", "c"], TABLE, MADE, tmp_path))
    assert found == [[(run, t, "x") for run in "ab" for t in (1, 2, 3)], [("c", t, "x") for t in (1, 2, 3)]]


def test_of_a_long_run_a_piece_at_a_time_is_ordered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(as_read, "PIECE_ROWS", 4)
    file = stored(tmp_path / "1.parquet", [("a", t, "x") for t in (2, 1, 4, 3, 6, 5, 7)], group=2)
    (found,) = written(write_as_read([file], ["a"], TABLE, MADE, tmp_path))
    assert found == [("a", t, "x") for t in range(1, 8)]


@pytest.mark.parametrize(
    ("make", "row", "kept"),
    [
        (LINKS_TRUTH.make, {"up": True}, True),
        (LINKS_TRUTH.make, {"up": False}, False),
        (LINKS_TRUTH.make, {"up": None}, False),
        (POSITIONS.make, {"x": -1e11, "y": 0.0}, True),
        (POSITIONS.make, {"x": 0.0, "y": -1e12}, False),
        (POSITIONS.make, {"x": None, "y": 0.0}, False),
        (DELIVERIES.make, {"attempted": 2, "delivered": 1, "expected": None}, True),
        (DELIVERIES.make, {"attempted": 10**15, "delivered": 0, "expected": 1.0}, True),
        (DELIVERIES.make, {"attempted": 10**15 + 1, "delivered": 0, "expected": 1.0}, False),
        (DELIVERIES.make, {"attempted": 1, "delivered": -1, "expected": 1.0}, False),
        (DELIVERIES.make, {"attempted": 1, "delivered": None, "expected": 1.0}, False),
        (DELIVERIES.make, {"attempted": 1, "delivered": 1, "expected": 1.01}, False),
        (AIRTIME.make, {"t_ns": 4 * 10**18, "sent_ns": 10**15}, True),
        (AIRTIME.make, {"t_ns": 1, "sent_ns": 10**15 + 1}, False),
    ],
)
def test_ground_truth_that_cannot_be_meant_is_left_out(
    make: Callable[[Any], Any], row: dict[str, Any], kept: bool
) -> None:
    made = make(None)
    types = {"up": pa.bool_(), "x": pa.float64(), "y": pa.float64(), "expected": pa.float64()}
    schema = pa.schema([(name, types.get(name, pa.int64())) for name in row])
    rows = pa.Table.from_pylist([row], schema)
    assert rows.filter(made.where(rows)).num_rows == int(kept)
    assert source_of(made) == f"truth {made.truth}"
