"""Runs are read once; what fails is one sentence, and the next try goes on from there."""

import errno
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pyarrow import parquet

from node_agent.telemetry.segment_files import open_regular
from orchestrator.analytics.intake import columns
from orchestrator.analytics.intake.files import Written
from orchestrator.analytics.intake.taking import take_in, unread, written_by_executor
from orchestrator.analytics.pipeline import analyze
from orchestrator.analytics.store import TableStore
from orchestrator.errors import RoveError
from orchestrator.results.inputs import runs_in
from tests.synthetic_runs import known_run


def told(fraction: float) -> None:
    assert 0 <= fraction <= 1


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The files that are opened for reading."""
    opened: list[Path] = []

    def watched(path: Path) -> Any:
        opened.append(path)
        return open_regular(path)

    monkeypatch.setattr("orchestrator.analytics.intake.task.open_regular", watched)
    return opened


def test_only_what_is_new_is_read(tmp_path: Path, read: list[Path]) -> None:
    store = TableStore(tmp_path)
    first = runs_in(known_run(tmp_path, run="one").write())
    take_in(store, first, told)
    assert len(read) == len(first[0].recorded()) and unread(store, first) == []
    both = [*first, *runs_in(known_run(tmp_path, run="two").write())]
    read.clear()
    take_in(store, both, told)
    assert {path.relative_to(tmp_path).parts[1] for path in read} == {"two"}
    read.clear()
    take_in(store, both, told)
    assert read == []
    changed = next((tmp_path / "known" / "one" / "nodes" / "n2" / "segments").iterdir())
    changed.write_bytes(changed.read_bytes()[:-20])
    again = [*runs_in(tmp_path / "known" / "one"), *runs_in(tmp_path / "known" / "two")]
    take_in(store, again, told)
    assert {path.relative_to(tmp_path).parts[1] for path in read} == {"one"}


def test_a_full_disk_is_one_sentence_and_the_next_try_succeeds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = known_run(tmp_path, run="one").write()
    with monkeypatch.context() as full:

        def fail(*arguments: object, **options: object) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        full.setattr(parquet, "ParquetWriter", fail)
        with pytest.raises(RoveError) as failed:
            analyze([directory])
    assert str(failed.value) == (
        "the analysis of one found the disk full: make room, then analyse again; nothing is lost"
    )
    store, runs = TableStore(tmp_path), runs_in(directory)
    assert list(store.root.glob("*/*.parquet")) == [] and not (store.root / "staging").exists()
    take_in(store, runs, told)
    assert unread(store, runs) == []


def test_what_an_executor_says_is_checked_before_it_is_believed(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"")
    sound = Written(columns.BOOT, "a.parquet", ("one",))
    assert written_by_executor(msgspec.json.encode([sound]), tmp_path, {"one"}) == [sound]
    pickled = b"cos\nsystem\n(S'touch " + str(tmp_path / "owned").encode() + b"'\ntR."
    lies = (
        pickled,
        b"[" * 100_000,
        b"[[1, 2, 3]]",
        msgspec.json.encode([sound._replace(name="../a.parquet")]),
        msgspec.json.encode([sound._replace(name="gone.parquet")]),
        msgspec.json.encode([sound._replace(of="record ../../x")]),
        msgspec.json.encode([sound._replace(runs=("other",))]),
    )
    for told in lies:
        with pytest.raises(RoveError, match="in a way that cannot be believed"):
            written_by_executor(told, tmp_path, {"one"})
    assert not (tmp_path / "owned").exists()
