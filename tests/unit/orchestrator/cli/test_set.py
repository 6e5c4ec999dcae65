"""The words of `rove set` on a command line."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from orchestrator.cli.app import app
from orchestrator.cli.set import wanted_by
from orchestrator.errors import BadInput, RoveError
from orchestrator.runs import journal as journals
from orchestrator.runs import run_directory
from orchestrator.runs.files import write_json
from tests.unit.orchestrator.cli.test_cli import finished_run


def test_negative_numbers_are_words_and_no_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted: list[object] = []

    async def set_by_hand(directory: run_directory.RunDirectory, fault: object) -> str:
        wanted.append(fault)
        return "moved"

    monkeypatch.setattr("orchestrator.live.door.set_by_hand", set_by_hand)
    directory = run_directory.create(tmp_path, "lab", "up")
    journal = journals.Journal.create(directory.journal)
    words = ["set", "up", "move", "a", "-5", "-0.5", "--for", "3s", "--runs-dir", str(tmp_path)]
    try:
        answer = CliRunner().invoke(app, words)
    finally:
        journal.close()
    assert (answer.exit_code, answer.stdout) == (0, "moved\n")
    assert wanted == [{"move": {"node": "a", "to": [-5.0, -0.5]}, "for": "3s"}]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["move", "a", "1", "1", "--fro", "5s"], 'there is no option --fro: did you mean "--for"?'),
        (["--zzz", "a"], "there is no option --zzz: there are --for, --runs-dir and --json"),
        (["mvoe", "a", "1", "1"], "there is no action 'mvoe': did you mean \"move\"?"),
        (["move", "a", "-5"], "rove set RUN move NODE X Y"),
    ],
)
def test_what_is_no_action_is_one_clear_error(words: list[str], text: str) -> None:
    with pytest.raises(BadInput) as raised:
        wanted_by(words[0], words[1:])
    assert str(raised.value) == text


def test_a_run_that_has_ended_cannot_be_changed(tmp_path: Path) -> None:
    finished_run(tmp_path, "quick", "r1")
    write_json(tmp_path / "quick" / "r1" / "manifest.json", {})
    answer = CliRunner().invoke(app, ["set", "r1", "move", "a", "1", "1", "--runs-dir", str(tmp_path)])
    assert isinstance(answer.exception, RoveError) and answer.exception.exit_code == 2
    assert str(answer.exception) == "run r1 has ended: only a network that is up can be changed"
