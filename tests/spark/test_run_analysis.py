"""`rove run` with its analysis: figures, expectations, and an end in order even in the middle of Spark."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.lifecycle import journal as journals
from orchestrator.lifecycle import teardown
from orchestrator.lifecycle.run_directory import RunDirectory
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


def test_a_run_ends_with_figures_that_hold_and_a_report(run: RunDirectory) -> None:
    ended = rove(root_of(run), "run", str(LINE), "--run-id", RUN_ID, "--json", timeout=PATIENCE_S)
    assert ended.returncode == 0, ended.stderr
    document = json.loads(ended.stdout)
    assert document["report"] == str(run.report)
    assert run.report.read_text().lstrip().lower().startswith("<!doctype html>")
    (member,) = document["runs"]
    assert member["summary"] == json.loads(run.summary.read_text())
    assert member["summary"]["metrics"]["throughput_fps"] > 9
    assert all(expectation["holds"] for expectation in verdict(run)["expectations"])
    assert len(verdict(run)["expectations"]) == 2
    assert_nothing_is_left(run)


def test_an_expectation_that_does_not_hold_fails_the_run(tmp_path: Path, run: RunDirectory) -> None:
    file = experiment_file(tmp_path, expect=["throughput_fps > 1000", "loss_ratio < 0.5"])
    ended = rove(root_of(run), "run", str(file), "--run-id", RUN_ID, "--json", timeout=PATIENCE_S)
    assert ended.returncode == 1, ended.stderr
    document = json.loads(ended.stdout)
    assert document["verdict"] == document["runs"][0]["summary"]["verdict"] == "failed"
    assert [expectation["holds"] for expectation in verdict(run)["expectations"]] == [False, True]
    assert verdict(run)["reasons"][0].startswith("expectation does not hold: ")


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
    for spark in marked(run):
        os.kill(spark, signal.SIGSTOP)  # so that it cannot notice and end by itself
    process.kill()
    finish(process)
    assert marked(run)
    assert rove(root_of(run), "down").returncode == 0
    assert verdict(run)["verdict"] == "valid"
    assert_nothing_is_left(run)
