"""Runs come into the tables by a streaming query: once, whatever was there before, and while others go on."""

import json
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyarrow import parquet

from node_agent.telemetry.segment_files import open_regular
from orchestrator.analytics.intake.taking import take_in
from orchestrator.analytics.publishing import parse_target, publish_tables
from orchestrator.analytics.store import TableStore
from orchestrator.analytics.streaming import query
from orchestrator.analytics.streaming.query import Taker, take_in_new
from orchestrator.errors import RoveError
from orchestrator.results.inputs import runs_in
from tests.synthetic_runs import known_run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.timeout(580)
PATIENCE_S = 280.0


class Following:
    """A taker that notes what it was told."""

    def __init__(self, spark: "SparkSession", root: Path) -> None:
        self.done: list[str] = []
        self.refused: list[str] = []
        self.taker = Taker(
            root,
            spark,
            lambda step, fraction: None,
            lambda at, _: self.done.append(at.name),
            self.refused.append,
        )

    def to_the_end(self) -> list[str]:
        """Takes in what is new (availableNow); returns the runs."""
        self.done.clear()
        take_in_new(self.taker, and_go_on=False)
        return self.done


def rows(root: Path) -> dict[str, list[str]]:
    """All rows of all tables and records, in no order."""
    store = TableStore(root)
    found: dict[str, list[str]] = {}
    for file in store.state.files:
        content = parquet.read_table(store.root / file.path, partitioning=None).to_pylist()
        name = f"{file.layer} {file.of}"
        found[name] = sorted([*found.get(name, []), *(json.dumps(row, default=str) for row in content)])
    return found


def until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain: {what}"
        time.sleep(0.1)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The runs of which files are opened."""
    opened: set[str] = set()

    def watched(path: Path) -> Any:
        opened.add(path.parts[path.parts.index("known") + 1])
        return open_regular(path)

    monkeypatch.setattr("orchestrator.analytics.intake.task.open_regular", watched)
    return opened


def test_only_what_is_new_is_taken_in_and_a_batch_that_was_cut_off_is_repeated(
    spark: "SparkSession", tmp_path: Path, read: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    known_run(tmp_path, run="one").write()
    (tmp_path / "known" / "bad").mkdir()
    (tmp_path / "known" / "bad" / "verdict.json").write_text("{}")
    following = Following(spark, tmp_path)
    assert following.to_the_end() == ["one"]
    (why,) = following.refused
    assert "bad cannot be analysed: it has no manifest.json" in why
    assert (tmp_path / "known" / "one" / "summary.json").is_file()
    read.clear()
    assert following.to_the_end() == [] and not read

    # One more run: nothing else is read. The batch is cut off after the store has it, and is repeated.
    known_run(tmp_path, run="two").write()
    with monkeypatch.context() as crash:

        def cut_off(at: Path, summary: dict[str, Any]) -> None:
            raise RoveError("the power went")

        crash.setattr(following.taker, "done", cut_off)
        with pytest.raises(RoveError, match="the power went"):
            following.to_the_end()
    assert read == {"two"}
    following.taker.failure = None
    read.clear()
    assert following.to_the_end() == ["two"] and not read

    # Spark's processes, which tell in plain bytes what they wrote, read the same records; and so without a
    # stream.
    place = tmp_path / "elsewhere"
    shutil.copytree(tmp_path / "known", place / "known", symlinks=True)
    runs = [run for name in ("one", "two") for run in runs_in(place / "known" / name)]
    take_in(TableStore(place), runs, lambda fraction: None, spark)
    streamed = rows(tmp_path)
    assert rows(place) == {name: found for name, found in streamed.items() if name.startswith("records ")}
    assert any(name.startswith("tables ") for name in streamed)


def test_records_that_come_after_their_verdict_are_taken_in(spark: "SparkSession", tmp_path: Path) -> None:
    run = known_run(tmp_path, run="one").write()
    (run / "nodes" / "n9").rename(tmp_path / "is-copied-last")
    following = Following(spark, tmp_path)
    assert following.to_the_end() == ["one"]
    part = json.loads((run / "summary.json").read_text())["metrics"]
    (tmp_path / "is-copied-last").rename(run / "nodes" / "n9")
    assert following.to_the_end() == ["one"]
    assert json.loads((run / "summary.json").read_text())["metrics"] != part
    assert following.to_the_end() == [] and following.refused == []


def test_runs_are_taken_in_while_others_go_on_and_it_ends_when_asked_to(
    spark: "SparkSession", tmp_path: Path
) -> None:
    going_on = known_run(tmp_path, run="long").write()
    verdict = (going_on / "verdict.json").read_bytes()
    (going_on / "verdict.json").unlink()
    segment = next((going_on / "nodes" / "n9" / "segments").iterdir())
    whole = segment.read_bytes()
    segment.write_bytes(whole[: len(whole) // 2])
    following = Following(spark, tmp_path)
    failures: list[BaseException] = []

    def follow() -> None:
        try:
            take_in_new(following.taker, and_go_on=True)
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=follow)
    thread.start()
    try:
        store = TableStore(tmp_path)
        until(
            lambda: bool(store.state.files_of("tables", "tuples", ["long"])), "tables of a run that goes on"
        )
        assert not (going_on / "summary.json").exists() and following.done == []
        known_run(tmp_path, run="short").write()
        until(lambda: following.done == ["short"], "a run that has ended")
        segment.write_bytes(whole)
        (going_on / "verdict.json").write_bytes(verdict)
        until(lambda: following.done == ["short", "long"], "the long run has ended")
    finally:
        following.taker.ending.set()
        thread.join(PATIENCE_S)
    assert not thread.is_alive() and failures == [] and following.refused == []
    summaries = [
        json.loads((tmp_path / "known" / run / "summary.json").read_text()) for run in ("short", "long")
    ]
    assert summaries[0]["metrics"] == summaries[1]["metrics"]
    with query._alone(tmp_path):  # nobody follows any more
        pass


def test_tables_are_published_through_sparks_file_systems_and_again(
    spark: "SparkSession", tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """viewfs stands for any file system that Hadoop knows: pip's package has no server of HDFS, and no S3."""
    (tmp_path / "mounted").mkdir()
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()
    hadoop.set("fs.viewfs.mounttable.lab.link./tables", f"file://{tmp_path}/mounted")
    hadoop.set("fs.defaultFS", "viewfs://lab/")  # as on YARN: paths of ours mean this machine all the same
    request.addfinalizer(lambda: hadoop.set("fs.defaultFS", "file:///"))
    runs = [known_run(tmp_path, run=run).write() for run in ("one", "two")]
    assert Following(spark, tmp_path).to_the_end() == ["one", "two"]
    store = TableStore(tmp_path)
    target = parse_target("viewfs://lab/tables/rove")
    publish_tables(spark, runs, target)
    publish_tables(spark, runs[:1], target)  # replaces its own rows only
    (version,) = (tmp_path / "mounted" / "rove").iterdir()
    for table in ("tuples", "runs", "nodes"):
        ours = store.read(spark, table, ["one", "two"])
        published = spark.read.parquet(f"{target.url}/{version.name}/{table}").select(ours.columns)
        found, expected = (sorted(map(str, each.toArrow().to_pylist())) for each in (published, ours))
        assert found == expected and found
    stale = tmp_path / "mounted" / "rove" / version.name / "quarantine" / "run=one"
    stale.mkdir(parents=True)  # rows of before the run was collected anew
    publish_tables(spark, runs[:1], target)
    assert not stale.exists()
    with pytest.raises(
        RoveError, match="cannot be published to s3a://lab/x: Spark here has no file system for s3a"
    ):
        publish_tables(spark, runs, parse_target("s3a://lab/x"))
    with pytest.raises(
        RoveError, match=r"cannot be published to hdfs://127.0.0.1:1/x: Spark says: .*refused"
    ):
        publish_tables(spark, runs, parse_target("hdfs://127.0.0.1:1/x"))
