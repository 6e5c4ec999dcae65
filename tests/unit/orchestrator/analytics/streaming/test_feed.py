"""Each run is fed once for how far it has come; after a crash, under the same name."""

import json
from pathlib import Path

import pytest

from orchestrator.analytics.streaming import feed as feeding
from orchestrator.analytics.streaming.feed import Feed
from orchestrator.runs.files import write_atomic
from tests.unit.orchestrator.analytics.streaming.test_looking import make


def fed(folder: Path) -> dict[str, dict[str, object]]:
    return {path.name: json.loads(path.read_text()) for path in (folder / "arrivals").iterdir()}


def test_what_is_new_is_fed_once_also_by_the_next_process(tmp_path: Path) -> None:
    root, folder = tmp_path / "runs", tmp_path / "stream"
    folder.mkdir()
    make(root, "e/a", verdict=True)
    make(root, "e/b", recorded=5)
    first = Feed(root, folder, "v")
    assert (first(), first()) == (2, 0)
    assert sorted(map(str, fed(folder).values())) == sorted(
        str({"version": 1, "run": run, "ended": ended}) for run, ended in (("e/a", True), ("e/b", False))
    )
    assert Feed(root, folder, "v")() == 0
    make(root, "e/b", verdict=True)
    assert Feed(root, folder, "v")() == 1
    assert len(fed(folder)) == 3
    assert Feed(root, folder, "other tables")() == 2


def test_killed_before_it_is_noted_it_feeds_the_same_files_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, folder = tmp_path / "runs", tmp_path / "stream"
    folder.mkdir()
    make(root, "e/a", verdict=True)
    with monkeypatch.context() as crash:
        plain = write_atomic

        def killed(path: Path, data: bytes) -> None:
            if path.name == "marks.json":
                raise KeyboardInterrupt
            plain(path, data)

        crash.setattr(feeding, "write_atomic", killed)
        with pytest.raises(KeyboardInterrupt):
            Feed(root, folder, "v")()
    before = fed(folder)
    assert Feed(root, folder, "v")() == 1
    assert fed(folder) == before


def test_marks_that_cannot_be_read_feed_every_run_again(tmp_path: Path) -> None:
    root, folder = tmp_path / "runs", tmp_path / "stream"
    folder.mkdir()
    make(root, "e/a", verdict=True)
    Feed(root, folder, "v")()
    for content in ("{", "[1]", '{"version": 99, "runs": {"e/a": "x"}}'):
        (folder / "marks.json").write_text(content)
        assert Feed(root, folder, "v")() == 1
