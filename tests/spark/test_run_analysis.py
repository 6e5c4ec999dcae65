"""`rove run` with its analysis: figures, expectations, and an end in order even in the middle of Spark."""

import json
import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from orchestrator.lifecycle import teardown
from orchestrator.runs import journal as journals
from orchestrator.runs.run_directory import RunDirectory
from tests.unit.rove_process import (
    LINE,
    RUN_ID,
    experiment_file,
    finish,
    marked,
    rove,
    start,
    verdict,
    wait_until,
)

pytestmark = pytest.mark.timeout(200)
PATIENCE_S = 180.0


@pytest.fixture
def run(tmp_path: Path) -> Iterator[RunDirectory]:
    directory = RunDirectory(tmp_path / "runs" / "line" / RUN_ID)
    yield directory
    if directory.path.exists():
        teardown.tear_down(directory, teardown.stop_orchestrator(directory, patience=1.0))


def root_of(run: RunDirectory) -> Path:
    return run.path.parent.parent


def assert_nothing_is_left(run: RunDirectory) -> None:
    assert marked(run) == []
    assert run.temporary_paths() == []
    assert not journals.is_locked(run.journal)


def hold_still(run: RunDirectory) -> None:
    """Stop whatever is marked, until nobody is left who could start another: launchers come and go."""
    stopped: set[int] = set()
    while running := set(marked(run)) - stopped:
        for process in running:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGSTOP)
        stopped |= running


def test_every_run_of_a_sweep_is_held_to_what_was_expected(tmp_path: Path, run: RunDirectory) -> None:
    """At 10 frames a second the short run cannot deliver what the long one does."""
    expect = ["delivered > 70", "loss_ratio < 0.05"]
    file = experiment_file(tmp_path, sweep={"duration": ["5s", "10s"]}, expect=expect)
    ended = rove(root_of(run), "run", str(file), "--run-id", RUN_ID, "--json", timeout=PATIENCE_S)
    assert ended.returncode == 1, ended.stderr
    document = json.loads(ended.stdout)
    assert (document["verdict"], document["report"]) == ("failed", str(run.report))
    assert run.report.read_text().lstrip().lower().startswith("<!doctype html>")
    assert document["reasons"] == [f"{RUN_ID}.01: {reason}" for reason in document["runs"][0]["reasons"]]
    short, long = (RunDirectory(Path(member["directory"])) for member in document["runs"])
    assert [verdict(member)["verdict"] for member in (short, long)] == ["failed", "valid"]
    assert [expectation["holds"] for expectation in verdict(short)["expectations"]] == [False, True]
    assert [expectation["holds"] for expectation in verdict(long)["expectations"]] == [True, True]
    for member, listed in zip((short, long), document["runs"], strict=True):
        summary = json.loads(member.summary.read_text())
        assert listed["summary"] == summary
        assert summary["verdict"] == listed["verdict"] == verdict(member)["verdict"]
    assert json.loads(run.summary.read_text())["verdict"] == verdict(run)["verdict"] == "failed"
    for directory in (run, short, long):
        assert_nothing_is_left(directory)


def test_an_interrupted_analysis_keeps_the_run(run: RunDirectory) -> None:
    process = start(root_of(run), LINE, "--json")
    wait_until(lambda: bool(marked(run)) and run.verdict.exists(), "Spark starts")
    process.send_signal(signal.SIGINT)
    code, out, err = finish(process)
    assert code == 130, err
    assert json.loads(out)["verdict"] == verdict(run)["verdict"] == "valid"
    assert f"rove analyze {RUN_ID}" in err
    assert_nothing_is_left(run)


def test_after_kill_9_in_the_analysis_down_leaves_nothing(run: RunDirectory) -> None:
    process = start(root_of(run), LINE)
    wait_until(lambda: len(marked(run)) >= 2 and run.verdict.exists(), "Spark starts")
    hold_still(run)  # so that it cannot notice and end by itself
    process.kill()
    finish(process)
    assert marked(run)
    assert rove(root_of(run), "down").returncode == 0
    assert verdict(run)["verdict"] == "valid"
    assert_nothing_is_left(run)
