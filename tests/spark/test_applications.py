"""A run of two applications: each has its own rows, figures and part of the report."""

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pyspark.sql import SparkSession

from node_agent.apps.dataflow.events import OperatorFault, RouteSwitch
from node_agent.model.telemetry import AgentStart, AgentStop
from orchestrator.analytics.pipeline import analyze, write_report
from orchestrator.analytics.store import TableStore
from orchestrator.errors import BadInput
from orchestrator.results import registry
from orchestrator.results.expectations import evaluate_expectations
from orchestrator.results.inputs import read_run
from orchestrator.runs.run_directory import RunDirectory
from tests.synthetic_runs import END_S, FROM_S, SOURCE, RunWriter, deliver, walk

pytestmark = pytest.mark.timeout(240)

RATES = {"faces": 2, "heat": 1}
LATENCIES_S = {"faces": 0.4, "heat": 0.8}
NODES = ("n1", "n2", "n9")


def two_applications(root: Path) -> Path:
    """Both have replicas of the same names and tuples of the same numbers, on the same nodes."""
    writer = RunWriter(root, "both", "b1", k=1)
    writer.app = ""
    for node in NODES:
        writer.record(node, 0.0, AgentStart("0.1.0", "virtual", ()))
    for app, rate in RATES.items():
        writer.app = app
        writer.record("n1", 1, RouteSwitch(SOURCE, "detect", None, "detect/0", None, 1.0, "ground_truth"))
        for index in range(100 * rate):
            deliver(writer, index + 1, FROM_S + index / rate, LATENCIES_S[app])
        if app == "heat":
            writer.record("n2", 50, OperatorFault("detect/0", "bad_image: torn", 3))
    writer.app = ""
    for node in NODES:
        writer.record(node, END_S, AgentStop("stopped"))
    writer.link(0, "n1", "n2", up=True)
    writer.link(0, "n2", "n9", up=True)
    walk(writer)
    directory = writer.write()
    manifest = json.loads((directory / "manifest.json").read_text())
    del manifest["plan"]
    plan = msgspec.to_builtins(writer.plan())
    manifest["apps"] = {name: {"kind": "query", "plan": plan} for name in RATES}
    (directory / "manifest.json").write_text(json.dumps(manifest))
    return directory


@pytest.fixture(scope="module")
def directory(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = two_applications(tmp_path_factory.mktemp("runs"))
    analyze([made], spark=spark)
    return made


@pytest.fixture(scope="module")
def summary(directory: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((directory / "summary.json").read_text())
    return found


def test_each_has_its_own_figures(summary: dict[str, Any]) -> None:
    assert set(summary["apps"]) == set(RATES)
    for name, rate in RATES.items():
        metrics = summary["apps"][name]["metrics"]
        assert (metrics["emitted"], metrics["delivered"], metrics["lost"]) == (100 * rate, 100 * rate, 0)
        assert metrics["latency_p50_s"] == pytest.approx(LATENCIES_S[name])
        assert metrics["source_sink_connected_ratio"] == 1.0
        assert metrics["no_route_s"] == 0.0


def test_what_is_of_the_run_stands_at_the_top(summary: dict[str, Any]) -> None:
    assert set(summary["metrics"]) == set(registry.metrics(""))
    assert summary["metrics"]["app_fairness"] == pytest.approx(1.0, abs=0.001)  # both got all they offered
    assert summary["operator_faults"] == {"bad_image": 3}
    assert summary["apps"]["faces"]["operator_faults"] == {}
    assert summary["apps"]["heat"]["operator_faults"] == {"bad_image": 3}
    assert (summary["telemetry"]["refused"], summary["telemetry"]["never_emitted"]) == (0, 0)


def test_an_expectation_names_its_application(summary: dict[str, Any]) -> None:
    held = ["faces.goodput_fps > 1.9", "heat.goodput_fps < 1.1"]
    assert evaluate_expectations(held, summary) == []
    (failed,) = evaluate_expectations(["heat.delivered > 150"], summary)
    assert str(failed) == "expected heat.delivered > 150, got 100"


def test_rows_carry_the_name_of_the_application(spark: SparkSession, directory: Path) -> None:
    store = TableStore(directory.parent.parent)
    counted = {
        row["app"]: row["count"]
        for row in store.read(spark, "tuples", ["b1"]).groupBy("app").count().collect()
    }
    assert counted == {"faces": 200, "heat": 100}
    assert {row["app"] for row in store.read(spark, "apps", ["b1"]).collect()} == set(RATES)


def test_the_report_has_a_part_for_each(directory: Path) -> None:
    page = write_report(directory).read_text()
    parts = {name: page.index(f'id="app-{name}"') for name in RATES}
    assert parts["faces"] < parts["heat"] < page.index("Radio and connectivity")
    assert page.count("<h2>Results</h2>") == 2
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert {"faces-goodput-time", "heat-goodput-time", "map"} <= set(ids)
    used = re.findall(r'(?:href="#|url\(#)([^")]+)', page)
    assert set(used) <= set(ids)
    assert "source to sink, heat" in page
    assert "Operators passed over what they could not use: bad image 3 ×." in page[parts["heat"] :]


def test_a_record_of_an_application_that_is_not_there_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    writer = RunWriter(tmp_path, "stray", "s1", k=1)
    for node in NODES:
        writer.record(node, 0.0, AgentStart("0.1.0", "virtual", ()))
    writer.app = "elsewhere"
    deliver(writer, 1, FROM_S, 0.5)
    writer.app = "query"
    deliver(writer, 1, FROM_S, 0.5)
    (summary,) = analyze([writer.write()], spark=spark)
    assert summary["telemetry"]["refused"] == 7
    assert summary["metrics"]["delivered"] == 1


def test_a_kind_that_nothing_here_knows_is_one_clear_error(tmp_path: Path) -> None:
    directory = RunWriter(tmp_path, "odd", "o1").write()
    manifest = json.loads((directory / "manifest.json").read_text())
    manifest["apps"] = {"mine": {"kind": "unheard_of", "plan": {}}}
    (directory / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(BadInput, match="knows applications of kind 'unheard_of', as 'mine' is"):
        read_run(RunDirectory(directory))
