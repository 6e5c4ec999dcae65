"""Nodes with clocks of their own: the analysis tells of them what it tells of nodes that share one."""

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from node_agent.apps.dataflow.events import RouteSwitch
from node_agent.model.telemetry import AgentStart, AgentStop
from orchestrator.analytics.pipeline import analyze, write_report
from orchestrator.analytics.store import TableStore
from tests.synthetic_runs import END_S, FROM_S, SOURCE, RunWriter, deliver

pytestmark = pytest.mark.timeout(240)

MS, SECOND = 10**6, 10**9
LATENCY_S = 0.05
ERROR_NS = MS // 2
CLOCKS = {"n1": (2.0, 50.0), "n2": (0.0, 0.0), "n9": (5.0, -50.0)}
TIMED = {"throughput_fps", "throughput_kbps", "latency_mean_s", "no_route_s"}
TIMED |= {"latency_network_s", "latency_queue_s"} | {
    f"latency_{name}_s" for name in ("p50", "p95", "p99", "max")
}


def quick_run(root: Path, run: str) -> RunWriter:
    """A tuple each second, from before to after the measured window, which its births are 0.25 s from."""
    writer = RunWriter(root, "clocked", run, k=1)
    for node in CLOCKS:
        writer.record(node, 0, AgentStart("0.1.0", "real", ()))
    writer.record("n1", 1, RouteSwitch(SOURCE, "detect", None, "detect/0", None, 1.0, "olsr"))
    writer.record("n1", 50, RouteSwitch(SOURCE, "detect", "detect/0", None, 1.0, None, "olsr"))
    writer.record("n1", 52, RouteSwitch(SOURCE, "detect", None, "detect/0", None, 1.0, "olsr"))
    for tau in range(1, 108):
        deliver(writer, tau, FROM_S - 3.75 + tau, LATENCY_S)
    for node in CLOCKS:
        writer.record(node, END_S, AgentStop("stopped"))
    return writer


@pytest.fixture(scope="module")
def analysed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("runs")
    alone = tmp_path_factory.mktemp("alone")
    apart = quick_run(root, "apart")
    apart.own_clocks(CLOCKS, ERROR_NS)
    directories = {"apart": apart.write(), "shared": quick_run(root, "shared").write()}
    directories["unheard"] = quick_run(root, "unheard").write()
    (directories["unheard"] / "radio" / "links.jsonl").unlink()
    analyze(list(directories.values()), spark=spark)
    by_itself = quick_run(alone, "shared").write()
    analyze([by_itself], spark=spark)
    return {**directories, "alone": by_itself}


def metrics(directory: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((directory / "summary.json").read_text())["metrics"]
    return found


def test_latencies_are_right_within_the_uncertainty(spark: SparkSession, analysed: dict[str, Path]) -> None:
    store = TableStore(analysed["apart"].parent.parent)
    tuples = store.read(spark, "tuples", ["apart"]).collect()
    assert len(tuples) == 107
    # Between two measurements that are wrong by ERROR_NS, interpolation is not wrong by more.
    assert all(abs(row["latency_ns"] - LATENCY_S * 1e9) <= 2 * ERROR_NS + 2 for row in tuples)
    hops = store.read(spark, "hops", ["apart"]).collect()
    step_ns = LATENCY_S * 1e9 / 4
    assert all(abs(row["received_ns"] - row["sent_ns"] - step_ns) <= 2 * ERROR_NS + 2 for row in hops)


def test_everything_else_is_as_with_one_clock(analysed: dict[str, Path]) -> None:
    apart, shared = metrics(analysed["apart"]), metrics(analysed["shared"])
    assert apart["emitted"] == 100
    operators = zip(apart.pop("operators").values(), shared.pop("operators").values(), strict=True)
    assert {k: v for k, v in apart.items() if k not in TIMED} == {
        k: v for k, v in shared.items() if k not in TIMED
    }
    for name in TIMED:
        assert apart[name] == pytest.approx(shared[name], abs=2 * ERROR_NS / 1e9 + 1e-6, rel=1e-4), name
    for one, other in operators:
        assert one == pytest.approx(other, abs=2 * ERROR_NS / 1e9 + 1e-6, rel=1e-4)


def test_where_nobody_knows_who_hears_whom_nothing_is_said_of_it(analysed: dict[str, Path]) -> None:
    name = "source_sink_connected_ratio"
    known, unknown = metrics(analysed["shared"]), metrics(analysed["unheard"])
    assert (known[name], unknown[name]) == (0.0, None)
    assert {**known, name: None} == unknown


def test_runs_with_one_clock_are_untouched_by_others(spark: SparkSession, analysed: dict[str, Path]) -> None:
    together, alone = (TableStore(analysed[name].parent.parent) for name in ("shared", "alone"))
    for table in ("tuples", "hops", "switches", "nodes", "runs"):
        rows = [
            sorted(store.read(spark, table, ["shared"]).collect(), key=str) for store in (together, alone)
        ]
        assert rows[0] == rows[1]


def test_the_report_shows_clocks_where_nodes_have_their_own(analysed: dict[str, Path]) -> None:
    page = write_report(analysed["apart"]).read_text()
    assert '<h2 id="clocks">' in page
    assert "<td>n9</td><td>13</td><td>+4,999.500</td><td>-50.0</td>" in page
    assert "Latencies are known to within" in page
    assert 'id="clocks"' not in write_report(analysed["shared"]).read_text()
