"""One run that cannot be analysed keeps no other from it; what is not the run's fault stops the stream."""

import errno
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JNetworkError
from pyspark.errors import PySparkException

from orchestrator.analytics import layout, pipeline
from orchestrator.analytics.failures import AnalysisFailed, DiskFull, SparkEnded
from orchestrator.analytics.store import TableStore
from orchestrator.analytics.streaming import query
from orchestrator.analytics.streaming.offsets import Arrival
from orchestrator.analytics.streaming.query import Taker
from orchestrator.errors import BadInput, RoveError
from tests.synthetic_runs import known_run


class Told:
    def __init__(self, root: Path) -> None:
        self.done: list[str] = []
        self.refused: list[str] = []
        spark: Any = None
        self.taker = Taker(root, spark, lambda step, fraction: None, self._done, self.refused.append)

    def _done(self, directory: Path, summary: dict[str, Any]) -> None:
        self.done.append(directory.name)


def pretend(monkeypatch: pytest.MonkeyPatch, error: Exception | None = None, of: str = "") -> list[list[str]]:
    """An analysis that only notes its runs, and fails for one of them."""
    calls: list[list[str]] = []

    def analyze(directories: Sequence[Path], *_: object, **__: object) -> list[dict[str, Any]]:
        calls.append([each.name for each in directories])
        if error is not None and of in calls[-1]:
            raise error
        return [{} for _ in directories]

    monkeypatch.setattr(pipeline, "analyze", analyze)
    return calls


def test_a_bad_run_is_named_and_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("one", "two"):
        known_run(tmp_path, run=name).write()
    (tmp_path / "known" / "bare").mkdir()
    calls = pretend(monkeypatch, AnalysisFailed("the metric m: mine.py, line 7"), of="two")
    told = Told(tmp_path)
    told.taker.take([Arrival(f"known/{name}", True) for name in ("bare", "gone", "one", "two")])
    assert calls == [["one", "two"], ["one"], ["two"]]
    assert told.done == ["one"]
    assert told.refused == [
        f"{tmp_path / 'known' / 'bare'} cannot be analysed: it has no manifest.json that can be read "
        "(did the run end?)",
        "the metric m: mine.py, line 7",
    ]


def test_a_run_that_is_removed_or_cannot_be_written_to_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("gone", "locked", "one"):
        known_run(tmp_path, run=name).write()
    place = tmp_path / "known"

    def analyze(directories: Sequence[Path], *_: object, **__: object) -> list[dict[str, Any]]:
        if place / "gone" in directories:
            shutil.rmtree(place / "gone", ignore_errors=True)
            raise BadInput("it has no manifest.json")
        if place / "locked" in directories:
            raise PermissionError(errno.EACCES, "Permission denied", str(place / "locked" / "summary.json"))
        return [{} for _ in directories]

    monkeypatch.setattr(pipeline, "analyze", analyze)
    told = Told(tmp_path)
    told.taker.take([Arrival(f"known/{name}", True) for name in ("gone", "locked", "one")])
    assert told.done == ["one"]
    assert told.refused == [f"{place / 'locked'}: Permission denied: {place / 'locked' / 'summary.json'}"]


def test_of_a_run_and_its_copy_the_first_is_taken_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(known_run(tmp_path, run="one").write(), tmp_path / "later" / "one")
    first, copy = tmp_path / "known" / "one", tmp_path / "later" / "one"
    calls = pretend(monkeypatch)
    told = Told(tmp_path)
    told.taker.take([Arrival("known/one", True), Arrival("later/one", True)])
    assert calls == [["one"]]
    assert told.refused == [
        f"{copy} cannot be analysed beside {first}, which has the same id: tables would have the rows of both"
        " as one run; move one of them to another runs' directory"
    ]


def test_a_full_disk_stops_the_stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known_run(tmp_path, run="one").write()
    pretend(monkeypatch, DiskFull("the disk is full"), of="one")
    told = Told(tmp_path)
    with pytest.raises(DiskFull):
        told.taker.take([Arrival("known/one", True)])
    pretend(monkeypatch, OSError(errno.ENOSPC, "No space left on device"), of="one")
    with pytest.raises(OSError, match="No space left"):
        told.taker.take([Arrival("known/one", True)])
    assert told.done == [] and told.refused == []


def test_asked_to_end_it_does_so_at_the_next_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known_run(tmp_path, run="one").write()

    def analyze(directories: Sequence[Path], progress: pipeline.Progress, **_: object) -> None:
        told.taker.ending.set()
        progress("making tables", 0.5)
        raise AssertionError

    monkeypatch.setattr(pipeline, "analyze", analyze)
    told = Told(tmp_path)
    with pytest.raises(query._Ended):
        told.taker.take([Arrival("known/one", True)])
    assert told.taker.failure is None


def test_one_process_follows_a_folder(tmp_path: Path) -> None:
    with (
        query._alone(tmp_path) as folder,
        pytest.raises(RoveError, match="another rove analyze follows the runs"),
        query._alone(tmp_path),
    ):
        raise AssertionError
    assert folder.parent.parent.name == ".tables"
    with query._alone(tmp_path):
        pass


def test_whether_a_folder_can_be_followed_is_known_before_spark_starts(tmp_path: Path) -> None:
    query.require_free(tmp_path)
    assert not list(tmp_path.iterdir())
    second = pytest.raises(RoveError, match="another rove analyze follows the runs")
    # It is refused at once, also while the first one writes.
    with query._alone(tmp_path) as folder, TableStore(tmp_path).writing():
        with second:
            query.require_free(tmp_path)
        with second, query._alone(tmp_path):
            raise AssertionError
    query.require_free(tmp_path)
    folder.parent.with_name(f"v{layout.VERSION + 1}").mkdir()
    with pytest.raises(RoveError, match="has tables of a newer Rove"):
        query.require_free(tmp_path)


def test_what_cannot_be_said_is_not_the_fault_of_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known_run(tmp_path, run="one").write()
    pretend(monkeypatch)
    told = Told(tmp_path)

    def say(directory: Path, summary: dict[str, Any]) -> None:
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    told.taker.done = say
    with pytest.raises(BrokenPipeError):
        told.taker.take([Arrival("known/one", True)])
    assert told.refused == []


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (Py4JNetworkError("Answer from Java side is empty"), SparkEnded, "Spark's process ended"),
        (OSError(errno.ENOSPC, "No space left on device"), DiskFull, "found the disk full"),
        (PySparkException("the checkpoint is damaged"), AnalysisFailed, "the checkpoint is damaged"),
    ],
)
def test_what_stops_the_stream_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, kind: type[RoveError], text: str
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(query, "_start", fail)
    with pytest.raises(kind, match=text):
        query.take_in_new(Told(tmp_path).taker, and_go_on=True)


def test_code_that_makes_other_tables_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    before = query.made_by()
    assert query.made_by() == before
    monkeypatch.setattr(query, "RESULTS_VERSION", layout.RESULTS_VERSION + 1)
    assert query.made_by() != before
