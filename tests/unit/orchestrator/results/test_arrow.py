"""Columns in memory get what is known of their run."""

import pyarrow as pa
import pytest

from orchestrator.results.arrow import with_times

pytestmark = [pytest.mark.unit, pytest.mark.timeout(30)]

LATE_NS = 1_800_000_000_000_000_001
"""A float cannot hold it."""


def test_rows_get_the_times_of_their_run_and_those_without_go() -> None:
    rows = pa.table({"run": ["b", "a", "none", "open", "b"], "t_ns": [1, 2, 3, 4, 5]})
    times = pa.table(
        {"run": ["a", "b", "open"], "zero_ns": [7, LATE_NS, 9], "ended_ns": [8, LATE_NS + 1, None]}
    )
    found = with_times(rows, times, ("zero_ns", "ended_ns"))
    assert found.to_pylist() == [
        {"run": "b", "t_ns": 1, "zero_ns": LATE_NS, "ended_ns": LATE_NS + 1},
        {"run": "a", "t_ns": 2, "zero_ns": 7, "ended_ns": 8},
        {"run": "b", "t_ns": 5, "zero_ns": LATE_NS, "ended_ns": LATE_NS + 1},
    ]


def test_of_no_rows_there_are_none() -> None:
    times = pa.table({"run": ["a"], "zero_ns": [7]})
    empty = pa.schema({"run": pa.string(), "t_ns": pa.int64()}).empty_table()
    assert with_times(empty, times, ("zero_ns",)).num_rows == 0
