"""Verbs that are given a run that failed, died, has ended, or is not all there: one clear error each."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from orchestrator.cli.app import app
from orchestrator.errors import RoveError
from orchestrator.runs import run_directory
from orchestrator.runs.files import write_json
from orchestrator.runs.journal import Journal
from tests.synthetic_runs import known_run
from tests.unit.orchestrator.cli.test_cli import finished_run

UP = {"phase": "up", "seconds": 1.0, "outcome": "timed out"}


def refused(root: Path, *arguments: str) -> str:
    answer = CliRunner().invoke(app, [*arguments, "--runs-dir", str(root)])
    assert isinstance(answer.exception, RoveError), answer.output
    assert answer.exception.exit_code == 2
    return str(answer.exception)


def failed_run(root: Path) -> run_directory.RunDirectory:
    """A run whose nodes did not come up, so that nothing was recorded."""
    directory = run_directory.RunDirectory(known_run(root, run="r1").write())
    for segment in directory.nodes.rglob("*.jsonl"):
        segment.unlink()
    write_json(directory.manifest, {"run": "r1", "apps": {"query": {"kind": "query"}}})
    write_json(
        directory.verdict,
        {"verdict": "failed", "reasons": ["up timed out: not done within 60 s"], "phases": [UP]},
    )
    Journal.create(directory.journal).close()
    return directory


@pytest.mark.parametrize("words", [("explain",), ("explain", "--at", "2s"), ("replay", "--policy", "static")])
def test_explain_says_why_the_run_failed(tmp_path: Path, words: tuple[str, ...]) -> None:
    failed_run(tmp_path)
    verb, *options = words
    assert refused(tmp_path, verb, "r1", *options).endswith(
        "\nthe run failed: up timed out: not done within 60 s"
    )


def test_explain_says_that_the_run_died(tmp_path: Path) -> None:
    dead = run_directory.create(tmp_path, "quick", "dead")
    dead.journal.write_text('{"entry": "opened", "pid": 1, "started": 0}\n')
    assert refused(tmp_path, "explain", "dead") == (
        "run dead has no deployment plan in manifest.json: did it begin?\n"
        "the run died: its process is gone (rove down dead cleans up)"
    )


def test_a_command_needs_a_network_that_is_up(tmp_path: Path) -> None:
    finished_run(tmp_path, "quick", "over")
    assert refused(tmp_path, "exec", "a", "--run", "over", "true") == (
        "run over has ended: there is no node to run a command on"
    )
    journal = Journal.create(run_directory.create(tmp_path, "quick", "sim").journal)
    try:
        text = refused(tmp_path, "exec", "a", "--run", "sim", "true")
    finally:
        journal.close()
    assert text == "run sim has no network on this machine: rove exec needs namespaces (netns)"


@pytest.mark.parametrize(
    "words", [("export", "r1", "--openmetrics"), ("report", "r1"), ("report", "r1", "--replay")]
)
def test_a_file_needs_a_folder(tmp_path: Path, words: tuple[str, ...]) -> None:
    known_run(tmp_path, run="r1").write()
    there = tmp_path / "nowhere" / "x"
    assert refused(tmp_path, *words, "--output", str(there)) == (
        f"--output {there}: there is no folder {there.parent}"
    )
    assert not there.parent.exists()


@pytest.mark.parametrize(
    "present", [(), ("spec.yaml",), ("journal.jsonl",), ("manifest.json",), ("verdict.json",)]
)
def test_status_lists_what_it_can_beside_a_half_written_run(tmp_path: Path, present: tuple[str, ...]) -> None:
    finished_run(tmp_path, "quick", "whole")
    half = tmp_path / "quick" / "half"
    half.mkdir()
    for name in present:
        (half / name).write_text('{"verdict": [')
    for words in ([], ["--json"], ["whole"]):
        answer = CliRunner().invoke(app, ["status", *words, "--runs-dir", str(tmp_path)])
        assert answer.exit_code == 0, answer.output
        assert "whole" in answer.stdout
