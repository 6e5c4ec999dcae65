"""A disk that is really full in the middle of an analysis: one sentence, and the next try succeeds."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from orchestrator.analytics import ingest
from orchestrator.analytics.failures import DiskFull
from orchestrator.analytics.intake.taking import take_in
from orchestrator.analytics.pipeline import analyze
from orchestrator.analytics.store import TableStore
from orchestrator.results.inputs import runs_in
from tests.synthetic_runs import known_run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.timeout(580)
SIZE = 4 * 2**20
TOLD = "the analysis of one found the disk full: make room, then analyse again; nothing is lost"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of a few megabytes."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    place = tmp_path / "disk"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "rove-test", str(place)], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def fill(disk: Path, but: int) -> Path:
    """Leaves so many bytes free."""
    filler = disk / "filler"
    with filler.open("wb") as file:
        file.write(b"\0" * max(0, shutil.disk_usage(disk).free - but))
    return filler


@pytest.mark.parametrize("by_spark", [False, True])
def test_a_full_disk_is_one_sentence_and_the_next_try_succeeds(
    spark: "SparkSession", small_disk: Path, by_spark: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once while telemetry is read, then while tables are made: by Rove itself (short runs), or by Spark."""
    if by_spark:
        monkeypatch.setattr(ingest, "BULK_BYTES", 0)
    directory = known_run(small_disk, run="one").write()
    filler = fill(small_disk, but=8 * 2**10)
    with pytest.raises(DiskFull) as failed:
        analyze([directory], spark=spark)
    assert str(failed.value) == TOLD
    filler.unlink()

    store, runs = TableStore(small_disk), runs_in(directory)
    take_in(store, runs, lambda fraction: None)
    filler = fill(small_disk, but=24 * 2**10)
    with pytest.raises(DiskFull) as failed:
        analyze([directory], spark=spark)
    assert str(failed.value) == TOLD
    assert store.state.runs["one"].read and not store.state.runs["one"].made
    assert not (directory / "summary.json").exists() and not (store.root / "staging").exists()

    filler.unlink()
    (summary,) = analyze([directory], spark=spark)
    assert summary["metrics"]["delivered"]
    named = {file.path for file in store.state.files}
    assert {path.relative_to(store.root).as_posix() for path in store.root.glob("*/*.parquet")} == named
