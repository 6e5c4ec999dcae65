"""`rove top` as a user calls it."""

import json

import pytest

from orchestrator.runs.run_directory import RunDirectory
from tests.unit.orchestrator.live.reading import cut_off
from tests.unit.rove_process import RUN_ID, rove

pytestmark = pytest.mark.timeout(90)


def test_the_state_is_printed_once(watched: RunDirectory) -> None:
    ended = rove(watched.path.parents[1], "top", "--once")
    assert ended.returncode == 0, ended.stderr
    assert RUN_ID in ended.stdout
    assert "camera/0 n01 → detect/" in ended.stdout
    assert "verdict valid" in ended.stdout


def test_a_program_gets_a_document(watched: RunDirectory) -> None:
    ended = rove(watched.path.parents[1], "top", RUN_ID, "--json")
    document = json.loads(ended.stdout)
    assert (document["run"], document["ended"]) == (RUN_ID, True)
    assert document["summary"]["verdict"] == "valid"
    assert document["state"]["query"]["total"][""]["value"]["offered"] > 0


def test_without_a_terminal_lines_are_printed(watched: RunDirectory) -> None:
    ended = rove(watched.path.parents[1], "top", RUN_ID)
    assert ended.returncode == 0, ended.stderr
    lines = ended.stdout.splitlines()
    assert lines[-1] == "verdict: valid"
    assert "loss" in lines[-2]


def test_a_run_that_died_is_told_so(copied: RunDirectory) -> None:
    cut_off(copied)
    for options in (["--once"], []):
        ended = rove(copied.path.parents[1], "top", RUN_ID, *options)
        assert ended.returncode == 0, ended.stderr
        assert "died: its process is gone; rove down cleans up" in ended.stdout
        assert "no doubts" not in ended.stdout


def test_there_must_be_such_a_run(watched: RunDirectory) -> None:
    ended = rove(watched.path.parents[1], "top", "nothing")
    assert ended.returncode == 2
    assert "no run 'nothing'" in ended.stderr
