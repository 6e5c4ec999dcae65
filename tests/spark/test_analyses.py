"""Analyses beyond the basic figures, each against a small run whose answer is worked out by hand."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from node_agent.apps.dataflow.events import (
    LinkCost,
    RouteSwitch,
    TupleDelivered,
    TupleEmitted,
    TupleProcessed,
    TupleReceived,
    TupleSent,
)
from node_agent.model.telemetry import AgentStart, AgentStop
from orchestrator.analytics.pipeline import Analysis, analysed
from tests.synthetic_runs import END_S, SINK, SOURCE, RunWriter, deliver, known_run, ns, small_sweep

pytestmark = pytest.mark.timeout(480)

NODES = ("n1", "n2", "n3", "n9")


def begin(writer: RunWriter) -> None:
    for node in NODES:
        writer.record(node, 0.0, AgentStart("0.1.0", "virtual", ()))


def end(writer: RunWriter) -> Path:
    for node in NODES:
        writer.record(node, END_S, AgentStop("stopped"))
    return writer.write({"replicas": 2})


def two_paths(root: Path) -> Path:
    """Three tuples through detect/0, one through detect/1; one of them arrives over both, one lost a record.

    Each waits 1 s at the source, is 2 s on its way, waits 3 s, is computed for 4 s, waits 1 s more to be
    sent, is 5 s on its way and waits 6 s at the sink: 22 s.
    """
    writer = RunWriter(root, "paths", "p1")
    begin(writer)
    for tau, via in ((1, 0), (2, 0), (3, 0), (4, 1), (5, 0)):
        born = 10.0 + tau
        replica, node = f"detect/{via}", f"n{via + 2}"
        writer.record("n1", born, TupleEmitted(SOURCE, SOURCE, tau, 1000))
        writer.record("n1", born + 1, TupleSent(SOURCE, replica, SOURCE, tau, 1000))
        writer.record(node, born + 3, TupleReceived(replica, SOURCE, SOURCE, tau, 1000))
        writer.record(node, born + 10, TupleProcessed(replica, SOURCE, tau, 1000, ns(4)))
        if tau != 5:  # its agent did not record that it sent this one
            writer.record(node, born + 11, TupleSent(replica, SINK, SOURCE, tau, 500))
        writer.record("n9", born + 16, TupleReceived(SINK, replica, SOURCE, tau, 500))
        writer.record("n9", born + 22, TupleDelivered(SINK, SOURCE, tau, 500, ns(born)))
    # The first one comes again, later, by the other replica: nothing changes.
    writer.record("n1", 30.0, TupleSent(SOURCE, "detect/1", SOURCE, 1, 1000))
    writer.record("n3", 31.0, TupleReceived("detect/1", SOURCE, SOURCE, 1, 1000))
    writer.record("n3", 32.0, TupleSent("detect/1", SINK, SOURCE, 1, 500))
    writer.record("n9", 34.0, TupleReceived(SINK, "detect/1", SOURCE, 1, 500))
    writer.record("n9", 35.0, TupleDelivered(SINK, SOURCE, 1, 500, ns(11.0)))
    return end(writer)


def faulty(root: Path) -> Path:
    """A tuple every 10 s, born at 10, 20 …, with a latency of 1 s; none is delivered from 40 s to 80 s."""
    writer = RunWriter(root, "faulty", "f1")
    begin(writer)
    for tau, born in enumerate(range(10, 110, 10), start=1):
        if not 40 <= born < 80:
            deliver(writer, tau, born, 1.0)
    writer.fault(5.0, "crash", "n3")  # before the window: not counted
    writer.fault(35.0, "crash", "n2")  # the next tuple that arrives is born at 80: 46 s
    writer.fault(45.0, "restart", "n2")  # its end: 36 s
    writer.fault(85.0, "cut", "n1 n2")  # 90 arrives at 91: 6 s; it never ends
    writer.fault(105.0, "crash", "n9")  # nothing is born after it
    return end(writer)


def believing(root: Path) -> Path:
    """Paths of 1 and 2 true links of cost 1 (later 2), and what replicas believed of them."""
    writer = RunWriter(root, "believing", "b1")
    begin(writer)
    deliver(writer, 1, 20.0, 1.0)
    for src, dst in (("n1", "n2"), ("n2", "n9")):
        writer.link(0, src, dst, up=True)
    costs = [
        ("n1", SOURCE, 20.0, "detect/0", 1.5),  # true 1: 50 % too dear
        ("n2", "detect/0", 20.0, SINK, 1.0),  # right
        ("n1", SOURCE, 22.0, "detect/1", 3.0),  # there is no path
        ("n1", SOURCE, 25.0, "detect/0", None),  # there is one
        ("n2", "detect/0", 62.0, SINK, None),  # there is none any more
        ("n2", "detect/0", 63.0, SINK, 1.0),  # in a second that is left out: 100 s are more than 60
        ("n1", SOURCE, 111.0, "detect/0", 9.0),  # after the window
    ]
    for node, replica, t_s, to, cost in costs:
        writer.record(node, t_s, LinkCost(replica, to, cost, "etx", "olsr"))
    writer.record("n1", 1.0, RouteSwitch(SOURCE, "detect", None, "detect/0", None, 1.0, "olsr"))
    writer.link(60, "n2", "n9", up=False)
    return end(writer)


def busy(root: Path) -> Path:
    """n1 sends a tenth of each second of the window, and n2 hears it; n9 sends 90 %, heard by n2 as well."""
    writer = RunWriter(root, "busy", "a1")
    begin(writer)
    deliver(writer, 1, 20.0, 1.0)
    writer.link(0, "n1", "n2", up=True)
    writer.link(0, "n9", "n2", up=True)
    for second in range(5, END_S):
        writer.airtime(second, "n1", 0.1)
        writer.airtime(second, "n9", 0.9)
    return end(writer)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("analyses")


@pytest.fixture(scope="module")
def found(spark: SparkSession, runs: Path) -> tuple[Analysis, dict[str, Path]]:
    directories = {
        "known": known_run(runs, run="007").write({"replicas": 2}),
        "two_paths": two_paths(runs),
        "faulty": faulty(runs),
        "believing": believing(runs),
        "busy": busy(runs),
        "sweep": small_sweep(runs, ks=(1, 3), seeds=(1, 2, 3)),
    }
    analysis = analysed(list(directories.values()), spark=spark)
    analysis.write_summaries()
    return analysis, directories


def metrics(found: tuple[Analysis, dict[str, Path]], name: str) -> dict[str, Any]:
    analysis, directories = found
    return dict(analysis.summaries[directories[name].resolve()]["metrics"])


def test_latency_is_divided_without_rest(found: tuple[Analysis, dict[str, Path]]) -> None:
    got = metrics(found, "two_paths")
    parts = [got[f"latency_{part}_s"] for part in ("network", "queue", "compute")]
    assert parts == [7.0, 11.0, 4.0]
    assert got["paths_known_ratio"] == 0.8
    known = metrics(found, "known")
    parts = [known[f"latency_{part}_s"] for part in ("network", "queue", "compute")]
    assert sum(parts) == pytest.approx(known["latency_mean_s"]) and parts == [0.275, 0.1375, 0.1375]


def test_each_operator_has_its_goodput_and_its_part_of_the_latency(
    found: tuple[Analysis, dict[str, Path]],
) -> None:
    got = metrics(found, "two_paths")["operators"]
    assert list(got) == ["source", "detect", "sink"]
    assert {name: (part["network_s"], part["queue_s"], part["compute_s"]) for name, part in got.items()} == {
        "source": (0.0, 1.0, 0.0),
        "detect": (2.0, 4.0, 4.0),
        "sink": (5.0, 6.0, 0.0),
    }
    # Five tuples in 100 s, although one arrived twice; 1000 bytes each, 500 at the sink.
    assert [part["arrived_fps"] for part in got.values()] == [0.05] * 3
    assert [part["arrived_kbps"] for part in got.values()] == [0.4, 0.4, 0.2]
    assert [part["replicas"] for part in got.values()] == [1, 2, 1]


def test_paths_are_counted_by_how_much_they_carried(found: tuple[Analysis, dict[str, Path]]) -> None:
    got = metrics(found, "two_paths")
    assert got["paths_used"] == 2
    # Shares 3/4 and 1/4: entropy 0.5623.
    assert got["paths_effective"] == pytest.approx(1.7548, abs=1e-4)
    assert metrics(found, "known")["paths_effective"] == 1.0


def test_recovery_counts_tuples_born_after_the_fault(found: tuple[Analysis, dict[str, Path]]) -> None:
    got = metrics(found, "faulty")
    assert (got["recovery_mean_s"], got["recovery_max_s"]) == (26.0, 46.0)
    assert got["resumed_mean_s"] == 36.0
    assert got["faults_unrecovered"] == 1
    without = metrics(found, "known")
    assert (without["recovery_mean_s"], without["faults_unrecovered"]) == (None, 0)


def test_believed_costs_are_held_against_true_ones(found: tuple[Analysis, dict[str, Path]]) -> None:
    got = metrics(found, "believing")
    assert got["cost_error_ratio"] == 0.25  # the median of 0.5 and 0
    assert got["cost_bias_ratio"] == pytest.approx(1.5**0.5)
    assert got["cost_unknown_ratio"] == pytest.approx(1 / 3, abs=1e-9)
    assert got["cost_phantom_ratio"] == 0.5


def test_switches_are_also_a_rate(found: tuple[Analysis, dict[str, Path]]) -> None:
    got = metrics(found, "known")
    assert got["switches_per_min"] == pytest.approx(got["switches"] * 60 / 100)


def test_the_use_of_the_medium_and_its_energy(found: tuple[Analysis, dict[str, Path]]) -> None:
    got = metrics(found, "busy")
    # Of 100 s, n1 sends 10 and n9 90, n2 hears both, n3 neither.
    assert got["airtime_sent_ratio"] == 0.25
    assert got["airtime_near_ratio"] == 0.5
    assert got["airtime_near_max_ratio"] == 1.0
    assert got["radio_energy_active_j"] == pytest.approx(100 * (1.4 - 0.75) + 100 * (0.9 - 0.75))
    assert got["radio_energy_j"] == pytest.approx(got["radio_energy_active_j"] + 400 * 0.75)


def test_one_application_has_nobody_to_be_fair_to(found: tuple[Analysis, dict[str, Path]]) -> None:
    assert "app_fairness" not in metrics(found, "known")


def test_the_report_has_files_of_its_figures_and_tables(
    found: tuple[Analysis, dict[str, Path]], tmp_path: Path
) -> None:
    analysis, directories = found
    written = {path.name: path for path in analysis.write_files(directories["sweep"], tmp_path / "files")}
    assert {"runs.csv", "cells.csv", "comparisons.csv", "operators.csv"} <= set(written)
    assert written["factor.svg"].read_text().startswith("<svg ")
    assert written["factor.png"].read_bytes().startswith(b"\x89PNG")
    with written["runs.csv"].open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["replicas"], row["seed"]) for row in rows[:2]] == [("1", "1"), ("1", "2")]
    with written["comparisons.csv"].open() as file:
        (goodput,) = (row for row in csv.DictReader(file) if row["metric"] == "goodput_fps")
    assert goodput["compared_with"] == "replicas=1" and goodput["pairs"] == "3"
    low, middle, high = (
        float(goodput[name])
        for name in ("ratio_of_means_bootstrap_95_low", "ratio_of_means", "ratio_of_means_bootstrap_95_high")
    )
    assert low < middle < high


def test_the_report_says_how_to_run_it_again(
    found: tuple[Analysis, dict[str, Path]], runs: Path, tmp_path: Path
) -> None:
    analysis, directories = found
    page = analysis.write_report(directories["sweep"], tmp_path / "report.html").read_text()
    assert f"rove run {runs.name}/sweep/20260301-130000-bbbb/spec.yaml" in page
    assert "carries" in page and "paired runs" in page
    assert json.loads((directories["sweep"] / "summary.json").read_text())["cells"][1]["operators"]
