"""Two queries at once on one network in virtual time: each with its own records, judged as one run."""

import json
from pathlib import Path

from orchestrator.runs.run_directory import RunDirectory
from tests.unit.rove_process import RUN_ID, experiment_file, rove
from tests.unit.two_queries import FAST, SINKS, SLOW, delivered, two_queries


def test_each_query_has_its_own_records(tmp_path: Path) -> None:
    file = two_queries(tmp_path, backend="sim", duration="10s")
    ended = rove(tmp_path, "run", str(file), "--run-id", RUN_ID, "--no-analyze", "--json")
    assert ended.returncode == 0, ended.stderr + ended.stdout
    (made,) = json.loads(ended.stdout)["runs"]
    run = RunDirectory(Path(made["directory"]))
    manifest = json.loads(run.manifest.read_text())
    assert {name: app["kind"] for name, app in manifest["apps"].items()} == {FAST: "query", SLOW: "query"}
    counts = delivered(run)
    assert set(counts) == set(SINKS.items())
    assert 200 <= counts[FAST, "e"] <= 221 and 50 <= counts[SLOW, "a"] <= 56
    for app in (FAST, SLOW):
        told = json.loads(rove(tmp_path, "explain", RUN_ID, "--at", "8s", "--app", app, "--json").stdout)
        assert told["app"] == app and len(told["decisions"]) == 2
    unnamed = rove(tmp_path, "replay", RUN_ID, "--policy", "static")
    assert unnamed.returncode == 2 and "has several applications (fast, slow)" in unnamed.stderr


def test_the_plan_shows_every_application(tmp_path: Path) -> None:
    file = two_queries(tmp_path, backend="sim", duration="10s")
    shown = rove(tmp_path, "plan", str(file)).stdout
    assert (
        "Replicas of fast" in shown and "Replicas of slow" in shown and "fast.camera → fast.screen" in shown
    )
    (cell,) = json.loads(rove(tmp_path, "plan", str(file), "--json").stdout)["cells"]
    assert set(cell["apps"]) == {FAST, SLOW} and "replicas" not in cell
    drawn = rove(tmp_path, "plan", str(file), "--graph", "mermaid", "--app", SLOW)
    assert drawn.returncode == 0 and drawn.stdout
    assert rove(tmp_path, "plan", str(file), "--graph", "mermaid").returncode == 2


def test_the_only_application_that_explains_itself_need_not_be_named(tmp_path: Path) -> None:
    file = experiment_file(tmp_path, flows=[{"from": "b", "to": "d", "rate": "64 kb/s"}])
    ended = rove(tmp_path / "runs", "run", str(file), "--run-id", RUN_ID, "--no-analyze")
    assert ended.returncode == 0, ended.stderr
    explained = rove(tmp_path / "runs", "explain", RUN_ID, "--at", "9s", "--json")
    assert explained.returncode == 0, explained.stderr
    assert json.loads(explained.stdout)["app"] == "query"
