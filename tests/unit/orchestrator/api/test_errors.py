"""What the Python API says if it cannot do what it is asked for."""

from pathlib import Path

import pytest

from orchestrator.api import compare, load
from orchestrator.api.sessions import SharedSession
from orchestrator.errors import BadInput


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


def test_releasing_what_was_never_started_does_nothing() -> None:
    session = SharedSession()
    session.release()
    session.stop()
