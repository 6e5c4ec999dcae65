"""Runs are seen when they have a verdict; those in virtual time also while they go on."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.analytics.streaming import looking
from orchestrator.analytics.streaming.looking import Looking, largest_run
from orchestrator.results.segments import Segment, segments_in


def make(root: Path, name: str, clock: str = "virtual", verdict: bool = False, recorded: int = 0) -> Path:
    run = root / name
    segments = run / "nodes" / "n1" / "segments"
    segments.mkdir(parents=True, exist_ok=True)
    (segments / "b0001-s000001.jsonl").write_bytes(b"x" * recorded)
    (run / "manifest.json").write_text(json.dumps({"clock": clock}))
    if verdict:
        (run / "verdict.json").write_text("{}")
    return run


def test_what_is_seen(tmp_path: Path) -> None:
    make(tmp_path, "e/ended", verdict=True, recorded=10)
    make(tmp_path, "e/growing", recorded=7)
    make(tmp_path, "e/real", clock="real", recorded=7)
    make(tmp_path, ".tables/v5", verdict=True)
    (tmp_path / "e" / "latest").symlink_to("ended")
    (tmp_path / "e" / "nothing").mkdir()
    (tmp_path / "file").write_text("")
    assert (largest_run(tmp_path), largest_run(tmp_path / "none")) == (10, 0)
    look = Looking(tmp_path)
    found = look()
    assert set(found) == {"e/ended", "e/growing"}
    assert found["e/growing"] == 7 and isinstance(found["e/ended"], str)
    assert look() == found

    make(tmp_path, "e/growing", recorded=70)
    make(tmp_path, "e/real", clock="real", verdict=True)
    changed = look()
    assert changed["e/growing"] == 70 and isinstance(changed["e/real"], str)
    assert changed["e/ended"] == found["e/ended"]


def test_a_run_that_is_removed_or_closed_meanwhile_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path, "e/closed", recorded=10)
    make(tmp_path, "e/growing", recorded=7)

    def segments(nodes: Path) -> Iterator[Segment]:
        if nodes.parent.name == "closed":
            raise PermissionError
        yield from segments_in(nodes)

    monkeypatch.setattr(looking, "segments_in", segments)
    assert Looking(tmp_path)() == {"e/growing": 7}
    assert largest_run(tmp_path) == 7


def test_a_new_verdict_of_the_same_size_is_seen(tmp_path: Path) -> None:
    run = make(tmp_path, "e/a", verdict=True)
    look = Looking(tmp_path)
    before = look()
    os.utime(run / "verdict.json", ns=(1, 1))
    assert look() != before


def test_a_run_that_is_copied_here_is_looked_at_until_it_stays_the_same(tmp_path: Path) -> None:
    now = 0.0
    run = make(tmp_path, "e/a", verdict=True, recorded=10)
    (run / "manifest.json").rename(tmp_path / "comes-later")
    look = Looking(tmp_path, lambda: now)
    marks = [look()["e/a"]]

    def later() -> bool:
        nonlocal now
        now += looking.SETTLED_S
        marks.append(look()["e/a"])
        return marks[-1] != marks[-2]

    (tmp_path / "comes-later").rename(run / "manifest.json")
    assert look()["e/a"] == marks[0] and later()
    make(tmp_path, "e/a", recorded=70)
    assert later() and not later()
    make(tmp_path, "e/a", recorded=71)
    assert not later()  # it is settled: nobody looks any more


def test_a_verdict_that_is_a_link_or_a_folder_is_none(tmp_path: Path) -> None:
    run = make(tmp_path, "e/a", clock="real")
    (run / "verdict.json").symlink_to("manifest.json")
    (make(tmp_path, "e/b", clock="real") / "verdict.json").mkdir()
    assert Looking(tmp_path)() == {}
    assert Looking(tmp_path / "gone")() == {}
