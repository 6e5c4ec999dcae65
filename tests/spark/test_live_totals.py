"""At the end of a run, what is shown of it while it goes on is what the report says."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from orchestrator.analytics.pipeline import analyze
from orchestrator.runs.run_directory import RunDirectory
from orchestrator.runs.timeline import Change
from tests.unit.orchestrator.live.reading import of, read
from tests.unit.rove_process import LINE, rove

# The first test also pays for the runs, for the start of Spark and for the analysis.
pytestmark = pytest.mark.timeout(480)

GRID = """\
topology:
  name: g9
  nodes: 9
  area: 400 m x 400 m
  mobility: {model: static, grid: {columns: 3, spacing: 100 m}}
  radio: {model: 80211b}
backend: sim
warmup: 3s
seed: 3
"""
FAULTS = (
    GRID
    + """\
name: faults
apps:
  stream:
    query: {name: synthetic_chain, operators: 2, rate: 10 fps}
    replicas: 3
  exact:
    query:
      reliability: exactly_once
      operators:
        cam: {kind: synthetic_source, rate: 5 fps, payload: 500 B}
        work: {kind: work, after: cam, cpu: 2 ms}
        out: {kind: sink, after: work}
    replicas: 2
faults:
- {at: 5s, for: 10s, crash: {app: stream, operator: detect, replica: 0}}
- {at: 20s, for: 12s, silence: {app: stream, operator: screen, replica: 0}}
- {at: 36s, for: 20s, silence: {app: exact, operator: out, replica: 0}}
duration: 45s
"""
)
TWO_SINKS = (
    GRID
    + """\
name: two-sinks
query:
  operators:
    cam: {kind: synthetic_source, rate: 5 fps, payload: 500 B}
    slow: {kind: work, after: cam, cpu: 250 ms}
    fast: {kind: work, after: cam, cpu: 1 ms}
    outa: {kind: sink, after: fast}
    outb: {kind: sink, after: slow}
replicas: {slow: 2, fast: 2}
placement:
  policy: explicit
  nodes: {cam: [n01], slow: [n05, n06], fast: [n04, n02], outa: [n07], outb: [n09]}
faults:
- {at: 4s, for: 5s, crash: {operator: slow, replica: 0}}
- {at: 10s, for: 30s, silence: {operator: outb, replica: 0}}
duration: 20s
"""
)


@pytest.fixture(scope="module")
def runs(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, RunDirectory]:
    root = tmp_path_factory.mktemp("runs")
    files = {"checkpoint": LINE.parent / "checkpoint.yaml"}
    for name, text in {"faults": FAULTS, "two-sinks": TWO_SINKS}.items():
        files[name] = root / f"{name}.yaml"
        files[name].write_text(text)
    for name, file in files.items():
        ended = rove(root, "run", str(file), "--run-id", name, "--no-analyze", timeout=120)
        assert ended.returncode == 0, ended.stderr
    found = {name: RunDirectory(root / name / name) for name in files}
    analyze([run.path for run in found.values()], spark=spark)
    return found


def reported(run: RunDirectory, app: str) -> dict[str, Any]:
    metrics: dict[str, Any] = json.loads(Path(run.path / "summary.json").read_text())["apps"][app]["metrics"]
    return metrics


@pytest.mark.parametrize(
    "name, app",
    [("faults", "stream"), ("faults", "exact"), ("checkpoint", "query"), ("two-sinks", "query")],
)
def test_totals_are_those_of_the_report(runs: dict[str, RunDirectory], name: str, app: str) -> None:
    changes = [change for change in read(runs[name], [50_000]) if change.app == app]
    total, report = of(changes, "total")[-1].value, reported(runs[name], app)
    dropped = {
        fate.partition(":")[2]: n for fate, n in report["fates"].items() if fate.startswith("dropped:")
    }
    assert total == {
        "offered": total["offered"],
        "delivered": report["delivered"],
        "lost": report["lost"],
        "waiting": report["in_flight_at_end"],
        "loss": report["loss_ratio"],
        "dropped": dropped,
        "switches": report["switches"],
    }
    if name == "checkpoint":  # joins and windows emit tuples of their own
        assert 0 < total["offered"] < report["emitted"]
    else:
        assert total["offered"] == report["emitted"]
    assert_counters_never_fall(changes)
    assert marked_switches(changes) >= report["switches"]


def test_what_these_runs_show_is_worth_comparing(runs: dict[str, RunDirectory]) -> None:
    stream, exact = (reported(runs["faults"], app) for app in ("stream", "exact"))
    assert stream["lost"] > 50 and stream["switches"] > 3
    assert exact["lost"] == 0 and exact["in_flight_at_end"] > 10
    assert reported(runs["checkpoint"], "query")["fates"]["absorbed"] > 100
    two = reported(runs["two-sinks"], "query")
    assert two["sinks"]["outb"]["lost"] > 5 and two["sinks"]["outa"]["lost"] < 5


def assert_counters_never_fall(changes: list[Change]) -> None:
    offered = [change.value["offered"] for change in of(changes, "total")]
    falls = sum(1 for before, now in pairwise(offered) if now < before)
    assert falls <= 1  # where the measured time begins


def marked_switches(changes: list[Change]) -> int:
    found = [change.value for change in of(changes, "route") if change.value["switch"]]
    assert all(value["old"] and value["to"] and value["old"] != value["to"] for value in found)
    return len(found)
