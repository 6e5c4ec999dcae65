"""Commands that Rove prints for people to copy."""

from pathlib import Path

import pytest

from orchestrator.cli.references import DEFAULT_ROOT, ROOT_VARIABLE, command_line


def test_a_printed_command_says_where_runs_are_unless_that_is_the_default(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv(ROOT_VARIABLE, raising=False)
    assert command_line("serve", "line1", DEFAULT_ROOT) == "rove serve line1"
    assert (
        command_line("serve", "line1", Path("/tmp/my runs")) == "rove serve line1 --runs-dir '/tmp/my runs'"
    )
    monkeypatch.setenv(ROOT_VARIABLE, "/data/runs")
    assert command_line("serve", "line1", Path("/data/runs")) == "rove serve line1"
    assert command_line("serve", "line1", DEFAULT_ROOT) == "rove serve line1 --runs-dir runs"
