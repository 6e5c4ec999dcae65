"""The store: what its log names counts, whatever else happened."""

import errno
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from orchestrator.analytics import log, store
from orchestrator.analytics.layout import VERSION
from orchestrator.analytics.log import RECORDS, TABLES
from orchestrator.analytics.store import Fresh, TableStore
from orchestrator.errors import RoveError

SCHEMA = pa.schema([("run", pa.string()), ("value", pa.int64())])


def enter(
    kept: TableStore, of: str, values: dict[str, Sequence[int]], mark: str, layer: str = RECORDS
) -> None:
    with kept.writing() as staging:
        rows = [{"run": run, "value": value} for run, found in values.items() for value in found]
        parquet.write_table(pa.Table.from_pylist(rows, SCHEMA), staging / "x.parquet")
        marks = {run: {"read" if layer == RECORDS else "made": mark} for run in values}
        kept.commit(layer, [Fresh(of, staging / "x.parquet", tuple(values))], marks, staging)


def values(kept: TableStore, of: str, *runs: str) -> list[tuple[str, int]]:
    rows = kept.rows(RECORDS, of, runs, SCHEMA).to_pylist()
    return sorted((row["run"], row["value"]) for row in rows)


def files(kept: TableStore) -> list[str]:
    return sorted(path.relative_to(kept.root).as_posix() for path in kept.root.glob("*/*.parquet"))


def test_a_run_that_changed_is_replaced_and_others_stay(tmp_path: Path) -> None:
    kept = TableStore(tmp_path)
    enter(kept, "k", {"a": [1, 2], "b": [3]}, "first")
    enter(kept, "k", {"c": [4]}, "first")
    of_c = [file.path for file in kept.state.files_of(RECORDS, "k", ["c"])]
    enter(kept, "k", {"a": [9]}, "second")
    assert values(kept, "k", "a", "b", "c") == [("a", 9), ("b", 3), ("c", 4)]
    assert values(kept, "k", "b") == [("b", 3)]
    assert [file.path for file in kept.state.files_of(RECORDS, "k", ["c"])] == of_c
    assert {run: held.read for run, held in kept.state.runs.items()} == {
        "a": "second",
        "b": "first",
        "c": "first",
    }
    assert sorted(file.path for file in kept.state.files) == files(kept)


def test_what_an_interrupted_change_left_is_swept_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = TableStore(tmp_path)
    enter(kept, "k", {"a": [1], "b": [2]}, "first")
    with monkeypatch.context() as crash:

        def fail(*arguments: object) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        crash.setattr(log, "write_atomic", fail)
        with pytest.raises(OSError, match="No space"):
            enter(kept, "k", {"a": [7]}, "second")
    assert len(files(kept)) == 3
    assert values(kept, "k", "a", "b") == [("a", 1), ("b", 2)]
    with kept.writing():
        assert len(files(kept)) == 1
    enter(kept, "k", {"a": [7]}, "second")
    assert values(kept, "k", "a", "b") == [("a", 7), ("b", 2)]


def test_a_file_that_is_gone_or_cut_makes_its_runs_unread(tmp_path: Path) -> None:
    kept = TableStore(tmp_path)
    enter(kept, "k", {"a": [1]}, "first")
    enter(kept, "t", {"a": [1], "b": [1]}, "made", TABLES)
    enter(kept, "k", {"b": [2]}, "first")
    (of_a,) = kept.state.files_of(RECORDS, "k", ["a"])
    (kept.root / of_a.path).write_bytes(b"")
    held = kept.state.runs
    assert (held["a"].read, held["b"].read) == ("", "first")
    assert held["a"].made == "made"
    (made,) = kept.state.files_of(TABLES, "t", ["a"])
    (kept.root / made.path).unlink()
    assert {run: entry.made for run, entry in kept.state.runs.items()} == {"a": "", "b": ""}


def test_a_damaged_log_means_that_everything_is_read_again(tmp_path: Path) -> None:
    kept = TableStore(tmp_path)
    enter(kept, "k", {"a": [1]}, "first")
    for path in (kept.root / "log").glob("*.json"):
        path.write_bytes(b"{")
    assert kept.state.runs == {}
    enter(kept, "k", {"a": [2]}, "second")
    assert values(kept, "k", "a") == [("a", 2)]


def test_many_small_files_become_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "MOST_SMALL_FILES", 3)
    kept = TableStore(tmp_path)
    for number in range(6):
        enter(kept, "k", {f"r{number}": [number]}, "first")
    assert len(kept.state.files) == 3
    runs = [f"r{number}" for number in range(6)]
    assert values(kept, "k", *runs) == [(run, number) for number, run in enumerate(runs)]
    assert sorted(file.path for file in kept.state.files) == files(kept)


def test_only_the_last_two_documents_of_the_log_stay(tmp_path: Path) -> None:
    kept = TableStore(tmp_path)
    for number in range(5):
        enter(kept, "k", {"a": [number]}, "first")
    assert len(list((kept.root / "log").iterdir())) == 2


def test_tables_of_a_newer_version_are_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / ".tables" / f"v{VERSION + 1}").mkdir(parents=True)
    with pytest.raises(
        RoveError, match=f"tables of a newer Rove \\(v{VERSION + 1}; this one makes v{VERSION}\\)"
    ):
        TableStore(tmp_path)
    (tmp_path / ".tables" / "v-strange").mkdir()


def test_two_writers_take_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "LOCK_TIMEOUT_S", 0.2)
    kept = TableStore(tmp_path)
    with kept.writing(), pytest.raises(RoveError, match="another analysis has been writing"), kept.writing():
        raise AssertionError


def test_files_that_are_read_outlive_a_change(tmp_path: Path) -> None:
    kept = TableStore(tmp_path)
    enter(kept, "k", {"a": [1]}, "first")
    with kept.reading(), kept.reading():
        paths = kept.paths(RECORDS, "k", ["a"])
        enter(kept, "k", {"a": [2]}, "second")
        enter(kept, "k", {"b": [3]}, "first")
        assert [parquet.read_table(path)["value"].to_pylist() for path in paths] == [[1]]
        assert values(kept, "k", "a", "b") == [("a", 2), ("b", 3)]
    with kept.writing():
        assert len(files(kept)) == 2 and not any(path.exists() for path in paths)
