"""Rows stay columns until those of one run are asked for."""

import json
from pathlib import Path

import pyarrow as pa
import pytest

from orchestrator.analytics.gather import Gathered, divided
from orchestrator.analytics.kept import KeptResults
from orchestrator.errors import RoveError

pytestmark = [pytest.mark.unit, pytest.mark.timeout(30)]


def test_rows_come_by_run_and_frame_in_the_order_that_they_had() -> None:
    here = pa.table({"run": ["b", "a", "b"], "value": [1, 2, 3]})
    packed = pa.table(
        {"name": ["x", "y", "x"], "run": ["a", "a", "b"], "row": ['{"v": 0.1}', '{"v": null}', '{"v": 3}']}
    )
    found = Gathered({"here": here}, packed)
    assert found.rows("a") == {"here": [{"run": "a", "value": 2}], "x": [{"v": 0.1}], "y": [{"v": None}]}
    assert found.rows("b") == {
        "here": [{"run": "b", "value": 1}, {"run": "b", "value": 3}],
        "x": [{"v": 3}],
    }
    assert found.rows("c") == {}


def test_nothing_was_collected_in_spark() -> None:
    assert Gathered({"here": pa.table({"run": pa.array([], pa.string())})}, None).rows("a") == {}


def test_rows_are_divided_where_the_run_changes() -> None:
    table = pa.concat_tables([pa.table({"run": ["a", "a"]}), pa.table({"run": ["a", "b"]})])
    assert [part["run"].to_pylist() for part in divided(table)] == [["a", "a", "a"], ["b"]]


def test_results_are_read_when_somebody_asks_for_them(tmp_path: Path) -> None:
    kept, run = tmp_path / "r.json", tmp_path / "runs" / "r"
    results = KeptResults({run: kept})
    assert list(results) == [run]
    with pytest.raises(RoveError, match="the results of r are gone: analyse it again"):
        results[run]
    kept.write_text(json.dumps({"metrics": {"emitted": 1}}))
    assert results[run] == {"metrics": {"emitted": 1}}
