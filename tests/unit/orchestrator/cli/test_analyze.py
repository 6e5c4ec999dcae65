"""`rove analyze` refuses what it cannot do before it starts Spark, in one sentence."""

import json
import shutil
import socket
from pathlib import Path

import pytest
from typer.testing import CliRunner

from orchestrator.analytics.layout import VERSION
from orchestrator.cli.app import app
from orchestrator.cli.results import show_summaries
from orchestrator.errors import BadInput, RoveError
from orchestrator.runs.run_directory import RunDirectory
from tests.synthetic_runs import known_run


def refused(root: Path, *arguments: str) -> RoveError:
    """Runs the verb; returns what it raised, which the command prints as one sentence."""
    found = CliRunner().invoke(app, ["analyze", *arguments, "--runs-dir", str(root)]).exception
    assert isinstance(found, RoveError), found
    assert "\n" not in str(found)
    return found


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ((), "which runs? Name some"),
        (("--watch", "latest"), "--watch takes in all runs of a directory: name it with --runs-dir"),
        (("--new", "--publish", "file:///x"), "--new takes in all runs of a directory"),
        (("latest", "--publish", "bucket"), "'bucket' is no place for tables: write hdfs://host:8020/rove"),
        (("latest", "--master", "spark:/x"), "'spark:/x' is no Spark master"),
        (("latest", "--spark-conf", "spark.x=1"), "--spark-conf is for a Spark of your choice"),
        (("nobody",), "nobody"),
    ],
)
def test_bad_arguments(tmp_path: Path, arguments: tuple[str, ...], why: str) -> None:
    known_run(tmp_path, run="one").write()
    found = refused(tmp_path, *arguments)
    assert isinstance(found, BadInput) and why in str(found)


def test_a_folder_without_runs_is_not_watched(tmp_path: Path) -> None:
    assert "there are no runs under" in str(refused(tmp_path / "none", "--watch"))


def test_a_run_without_manifest(tmp_path: Path) -> None:
    directory = known_run(tmp_path, run="one").write()
    (directory / "manifest.json").unlink()
    assert "it has no manifest.json that can be read (did the run end?)" in str(
        refused(tmp_path, str(directory))
    )


def test_a_run_and_its_copy(tmp_path: Path) -> None:
    directory = known_run(tmp_path, run="one").write()
    copy = shutil.copytree(directory, tmp_path / "later" / "one")
    found = refused(tmp_path, str(directory), str(copy))
    assert isinstance(found, BadInput)
    assert f"{copy} cannot be analysed beside {directory}, which has the same id" in str(found)


def test_tables_of_a_newer_rove(tmp_path: Path) -> None:
    directory = known_run(tmp_path, run="one").write()
    (tmp_path / ".tables" / f"v{VERSION + 1}").mkdir(parents=True)
    assert f"tables of a newer Rove (v{VERSION + 1}" in str(refused(tmp_path, str(directory)))
    assert json.loads((directory / "manifest.json").read_text())


def test_a_master_that_does_not_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.nice", lambda more: 0)  # this process is not its own
    directory = known_run(tmp_path, run="one").write()
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))  # it does not listen
        url = f"spark://127.0.0.1:{bound.getsockname()[1]}"
        for arguments in ((str(directory),), ("--watch",), ("--new",)):
            found = refused(tmp_path, *arguments, "--master", url)
            assert f"no Spark master answers at {url} (Connection refused): start it" in str(found)
    assert not (tmp_path / ".tables").exists()


@pytest.mark.parametrize(
    ("verdict", "expectations", "table", "said"),
    [
        ("valid", [], True, ""),
        ("invalid", [], True, "known one: invalid\n  the radio was late\n"),
        ("failed", [], False, "known one: failed, no result\n  the radio was late\n"),
        ("failed", [{"holds": False}], True, "known one: failed\n  the radio was late\n"),
        (None, [], True, "known one: not judged\n  the radio was late\n"),
    ],
)
def test_a_run_that_failed_is_not_shown_as_a_result(
    tmp_path: Path,
    verdict: str | None,
    expectations: list[object],
    table: bool,
    said: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    directory = RunDirectory(known_run(tmp_path, run="one").write())
    phases = [{"phase": "measure", "seconds": 1.0, "outcome": "ok" if expectations else "failed"}]
    document = {"verdict": verdict, "reasons": [], "phases": phases, "expectations": expectations}
    directory.verdict.write_text(json.dumps(document))
    metrics = {"goodput_fps": 0.0, "offered_fps": 0.0}
    summary = {
        "run": "one",
        "factors": {},
        "seed": 1,
        "verdict": verdict,
        "reasons": ["the radio was late"],
        "metrics": {},
        "apps": {"query": {"kind": "query", "metrics": metrics}},
    }
    show_summaries([(directory, summary)])
    shown = capsys.readouterr().out
    assert ("goodput" in shown) is table
    assert shown[shown.find("known one") :] == said if said else "known one" not in shown
