"""What the Python API says if it cannot do what it is asked for."""

import errno
from pathlib import Path
from typing import Any

import pytest

from orchestrator.analytics import pipeline
from orchestrator.api import compare, load
from orchestrator.api.sessions import SharedSession
from orchestrator.errors import BadInput, RoveError
from tests.synthetic_runs import known_run


def test_it_is_importable_as_rove() -> None:
    import rove

    assert rove.load is load and rove.compare is compare


@pytest.mark.parametrize("runs_dir", ["missing", "."])
def test_no_run_is_one_sentence(tmp_path: Path, runs_dir: str) -> None:
    with pytest.raises(BadInput, match=r"^no run 'quickstart' under .*: rove status lists what there is$"):
        load("quickstart", runs_dir=tmp_path / runs_dir)
    with pytest.raises(BadInput, match=r"^there are no runs under .* yet: start one with rove run FILE$"):
        load("latest", runs_dir=tmp_path / runs_dir)


def test_nothing_to_load_or_to_compare_is_said() -> None:
    with pytest.raises(BadInput, match=r"^say what to load"):
        load()
    with pytest.raises(BadInput, match=r"^say what to compare"):
        compare()


def test_a_run_without_a_manifest_is_one_sentence(tmp_path: Path) -> None:
    run = tmp_path / "broken" / "r1"
    run.mkdir(parents=True)
    (run / "journal.jsonl").write_text("")
    with pytest.raises(BadInput, match=r"r1 cannot be analysed: it has no manifest\.json"):
        load("broken", runs_dir=tmp_path)


def test_a_directory_that_cannot_be_written_to_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = known_run(tmp_path, run="one").write()

    def analysed(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(run / "summary.json"))

    monkeypatch.setattr(pipeline, "analysed", analysed)
    with pytest.raises(RoveError, match=r"^Permission denied: .*/one/summary\.json$"):
        load(run)


class Session:
    """Stands for a Spark session: it can end by itself."""

    def __init__(self) -> None:
        self.sparkContext = self._jsc = self
        self.has_ended = False

    def sc(self) -> "Session":
        return self

    def isStopped(self) -> bool:
        return self.has_ended


class Sessions(SharedSession):
    def __init__(self) -> None:
        super().__init__()
        self.started: list[Session] = []

    def _found_or_started(self, input_bytes: int) -> Any:
        session = Session()
        self.started.append(session)
        self._opened.callback(lambda: setattr(session, "has_ended", True))
        return session

    @property
    def ended(self) -> list[bool]:
        return [session.has_ended for session in self.started]


def test_the_last_user_of_a_session_stops_it() -> None:
    shared = Sessions()
    one, other = shared.acquire(0), shared.acquire(0)
    assert one is other
    shared.release(one)
    assert shared.ended == [False]
    shared.release(other)
    assert shared.ended == [True]
    shared.release(other)
    shared.stop()


def test_a_session_that_somebody_else_ended_is_replaced() -> None:
    shared = Sessions()
    old = shared.acquire(0)
    shared.started[0].has_ended = True
    new = shared.acquire(0)
    assert new is not old
    shared.release(old)
    assert shared.ended == [True, False]
    shared.release(new)
    assert shared.ended == [True, True]
