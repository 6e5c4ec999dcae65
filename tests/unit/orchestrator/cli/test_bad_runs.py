"""Verbs that are given a run that failed, died, has ended, or is not all there: one clear error each."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from orchestrator.analytics.beside import side_by_side
from orchestrator.cli.app import app
from orchestrator.errors import BadInput, RoveError
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
    for segment in (*directory.nodes.rglob("*.jsonl"), *(directory.path / "radio").glob("*.jsonl")):
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


def test_a_run_without_records_is_not_exported(tmp_path: Path) -> None:
    failed_run(tmp_path)
    output = tmp_path / "run.om"
    words = ["export", "r1", "--openmetrics", "-o", str(output), "--runs-dir", str(tmp_path)]
    answer = CliRunner().invoke(app, words)
    assert str(answer.exception) == "nothing is recorded in r1: rove status r1 says why"
    assert isinstance(answer.exception, RoveError) and answer.exception.exit_code == 1
    assert not list(tmp_path.glob("*run.om*"))


def test_a_failed_run_is_not_analysed_for_a_comparison(tmp_path: Path) -> None:
    for run, verdict in (("r1", "failed"), ("r2", "valid")):
        place = run_directory.RunDirectory(known_run(tmp_path, run=run).write())
        write_json(place.verdict, {"verdict": verdict, "reasons": [], "phases": [UP]})
    directories = [run_directory.resolve(run, tmp_path) for run in ("r1", "r2")]
    analysed: list[Path] = []
    with pytest.raises(BadInput):  # neither has figures
        side_by_side(directories, ["one", "two"], analysed.extend)
    assert analysed == [directories[1].path]


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
