"""From segments to summaries: every number against one worked out by hand from a known run.

Most tests look at what one analysis of several runs made of them: that is how the analysis is used.
"""

import json
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from pyspark.sql import SparkSession

from node_agent.apps.dataflow.events import (
    OperatorFault,
    TupleDelivered,
    TupleDropped,
    TupleEmitted,
    TupleProcessed,
    TupleReceived,
    TupleSent,
)
from node_agent.apps.dataflow.model.units import CountWindow
from node_agent.model.telemetry import AgentStart, AgentStop, RoutingOverhead
from orchestrator.analytics.pipeline import analyze, write_report
from orchestrator.analytics.store import TableStore
from orchestrator.errors import BadInput
from orchestrator.results import registry
from tests.synthetic_runs import SINK, SOURCE, RunWriter, deliver, known_run, small_sweep

PARTS = ("network_s", "queue_s", "compute_s")

# The first test also pays for the start of Spark and for the analysis.
pytestmark = pytest.mark.timeout(240)

Analysed = dict[str, Path]

# Of the known run: each quarter of a latency is on a link, in detect, on a link, waiting at the sink.
FURTHER: dict[str, Any] = {
    "latency_network_s": 0.275,
    "latency_queue_s": 0.1375,
    "latency_compute_s": 0.1375,
    "paths_known_ratio": 1.0,
    "paths_used": 1,
    "paths_effective": 1.0,
    "operators": {
        name: {"arrived_fps": fps, "arrived_kbps": kbps, "replicas": 1} | dict(zip(PARTS, times, strict=True))
        for name, fps, kbps, times in (
            ("source", 1.0, 8.0, (0.0, 0.0, 0.0)),
            ("detect", 0.91, 7.28, (0.1375, 0.0, 0.1375)),
            ("sink", 0.91, 3.64, (0.1375, 0.1375, 0.0)),
        )
    },
    "switches_per_min": 1.2,
    # No faults, no costs in the window, and nobody sent anything.
    **dict.fromkeys(("recovery_mean_s", "recovery_max_s", "resumed_mean_s")),
    "faults_unrecovered": 0,
    **dict.fromkeys(f"cost_{name}_ratio" for name in ("error", "bias", "unknown", "phantom")),
    **dict.fromkeys(("airtime_sent_ratio", "airtime_near_ratio", "airtime_near_max_ratio"), 0.0),
    "radio_energy_j": 300.0,  # four idle radios for 100 s
    "radio_energy_active_j": 0.0,
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Spark takes paths for patterns; this one must be read as it is."""
    return tmp_path_factory.mktemp("runs") / "my runs [1] {a}"


@pytest.fixture(scope="module")
def analysed(spark: SparkSession, runs: Path) -> Analysed:
    """Directories by name, analysed in one go."""
    directories = {
        "known": known_run(runs, run="007").write({"replicas": 2}),
        "repeated": known_run(runs, run="007-again").write({"replicas": 2}),
        "damaged": damaged_run(runs),
        "sweep": small_sweep(runs, ks=(1, 3), seeds=(1, 2)),
        "silent": RunWriter(runs, "silent", "s1").write(verdict="failed", reasons=["<b>no</b> nodes"]),
        "idle": idle_run(runs),
        "lonely": lonely_run(runs),
        "crashed": crashed_run(runs),
        "routed": routed_run(runs),
        "windowed": windowed_run(runs),
        "one_by_one": carried_run(runs, together=False),
        "together": carried_run(runs, together=True),
    }
    returned = analyze(list(directories.values()), spark=spark)
    assert returned == [summary_in(directory) for directory in directories.values()]
    return directories


def damaged_run(runs: Path) -> Path:
    """Two lines written twice, one lost, the agent on n2 killed while it wrote, and started again."""
    writer = known_run(runs, "damaged", "d1")
    writer.lines("n9").extend(writer.lines("n9")[10:12])
    del writer.lines("n3")[2]
    writer.lines("n2")[-1] = writer.lines("n2")[-1][:40] + b"!"
    writer.record("n2", 90.0, AgentStart("0.1.0", "virtual", ()), boot=2)
    writer.record("n2", 112.0, AgentStop("stopped"), boot=2)
    return writer.write(verdict="invalid", reasons=["telemetry incomplete"])


def idle_run(runs: Path) -> Path:
    """A source that has nowhere to send to, though the sink is within range."""
    writer = RunWriter(runs, "idle", "i1")
    writer.link(0, "n1", "n9", True)
    writer.record("n1", 0, AgentStart("0.1.0", "virtual", (SOURCE,)))
    for tau in range(1, 21):
        writer.record("n1", 10 + tau, TupleEmitted(SOURCE, SOURCE, tau, 10))
    writer.record("n1", 112, AgentStop("stopped"))
    return writer.write(verdict=None)


def lonely_run(runs: Path) -> Path:
    """A single tuple."""
    writer = RunWriter(runs, "lonely", "l1")
    deliver(writer, 1, 50.0, 0.5)
    return writer.write()


def crashed_run(runs: Path) -> Path:
    """A tuple that an agent held when it crashed; the agent came back, the tuple did not."""
    writer = RunWriter(runs, "crashed", "c1")
    for node in ("n1", "n2"):
        writer.record(node, 0, AgentStart("0.1.0", "virtual", ()))
    writer.record("n1", 20, TupleEmitted(SOURCE, SOURCE, 1, 10))
    writer.record("n1", 20, TupleSent(SOURCE, "detect/0", SOURCE, 1, 10))
    writer.record("n2", 21, TupleReceived("detect/0", SOURCE, SOURCE, 1, 10))
    writer.record("n2", 30, AgentStart("0.1.0", "virtual", ()), boot=2)
    for t_s, what, count, boot in ((15, "bad_image: torn", 1, 1), (16, "bad_image: empty", 2, 1)):
        writer.record("n2", t_s, OperatorFault("detect/0", what, count), boot)
    writer.record("n2", 40, OperatorFault("detect/0", "bad_image: torn", 1), boot=2)
    writer.record("n1", 40, OperatorFault(SOURCE, "camera_lost: gone", 1))
    writer.record("n1", 112, AgentStop("stopped"))
    writer.record("n2", 112, AgentStop("stopped"), boot=2)
    writer.fault(22, "crash", "n2")
    writer.fault(29.5, "restart", "n2")
    return writer.write()


def routed_run(runs: Path) -> Path:
    """Two daemons that count; the one on n2 is started anew in the middle, and never sent a TC."""
    writer = RunWriter(runs, "routed", "o1")
    for node in ("n1", "n2"):
        writer.record(node, 0, AgentStart("0.1.0", "virtual", ()))
    for t_s in (4, 9, 59, 109, 114):
        hellos = RoutingOverhead("olsr", "LQ_HELLO", t_s, 100 * t_s, 0, 0)
        writer.record("n1", t_s, hellos)
        writer.record("n1", t_s + 0.001, RoutingOverhead("olsr", "LQ_TC", t_s, 10 * t_s, t_s, 40 * t_s))
        writer.record("n2", t_s, hellos if t_s < 60 else RoutingOverhead("olsr", "LQ_HELLO", 1, 50, 0, 0))
    for node in ("n1", "n2"):
        writer.record(node, 115, AgentStop("stopped"))
    return writer.write()


def windowed_run(runs: Path) -> Path:
    """Three tuples that a window took, one that failed there, two results of which one was filtered out."""
    writer = RunWriter(runs, "windowed", "w1")
    source, detect, sink = writer.operators
    window = replace(detect, takes=CountWindow(2, 1))
    writer.operators = (source, window, replace(sink, after=("detect", "source")))
    for node in ("n1", "n2", "n9"):
        writer.record(node, 0, AgentStart("0.1.0", "virtual", ()))
    for tau in range(1, 5):
        writer.record("n1", 20 + tau, TupleEmitted(SOURCE, SOURCE, tau, 10))
        reason = "absorbed" if tau < 4 else "dead_letter:ValueError: not a picture"
        writer.record("n2", 22 + tau, TupleDropped("detect/0", SOURCE, tau, 0, reason))
    # The link broke before word came that this one had arrived.
    writer.record("n1", 29, TupleDropped(SOURCE, SOURCE, 1, 10, "link_failed", "detect"))
    # What failed goes on as a hole, which the sink takes for filtered.
    writer.record("n9", 27, TupleDropped(SINK, SOURCE, 4, 0, "filtered"))
    for tau in (1, 2):
        writer.record("n2", 25, TupleEmitted("detect/0", "detect", tau, 5))
    writer.record("n9", 26, TupleDelivered(SINK, "detect", 1, 5, 23 * 10**9))
    writer.record("n9", 26, TupleDropped(SINK, "detect", 2, 0, "filtered"))
    for node in ("n1", "n2", "n9"):
        writer.record(node, 112, AgentStop("stopped"))
    return writer.write()


def carried_run(runs: Path, together: bool) -> Path:
    """Three neighbours of different sizes, of which two arrive; the same told one by one and together."""
    run = "together" if together else "one_by_one"
    writer = RunWriter(runs, run, run)
    for node in ("n1", "n2", "n9"):
        writer.record(node, 0, AgentStart("0.1.0", "virtual", ()))
    births, second = (0, 1_000_000, 3_000_000), 10**9
    if together:
        writer.record("n1", 20, TupleEmitted(SOURCE, SOURCE, 1, 60, 3, (10, 20, 30)))
        writer.record("n1", 20, TupleSent(SOURCE, "detect/0", SOURCE, 1, 60, 3, (10, 20, 30)))
        writer.record("n2", 21, TupleReceived("detect/0", SOURCE, SOURCE, 1, 60, 3, (10, 20, 30)))
        writer.record("n2", 22, TupleProcessed("detect/0", SOURCE, 1, 60, 6000, 3, (10, 20, 30)))
        writer.record("n2", 22, TupleSent("detect/0", SINK, SOURCE, 1, 10, 2))
        writer.record("n9", 23, TupleReceived(SINK, "detect/0", SOURCE, 1, 10, 2))
        writer.record("n9", 24, TupleDelivered(SINK, SOURCE, 1, 10, 20 * second, 2, (), births[:2]))
    else:
        for tau, size in enumerate((10, 20, 30), start=1):
            writer.record("n1", 20, TupleEmitted(SOURCE, SOURCE, tau, size))
            writer.record("n1", 20, TupleSent(SOURCE, "detect/0", SOURCE, tau, size))
            writer.record("n2", 21, TupleReceived("detect/0", SOURCE, SOURCE, tau, size))
            writer.record("n2", 22, TupleProcessed("detect/0", SOURCE, tau, size, 2000))
        for tau in (1, 2):
            born_ns = 20 * second + births[tau - 1]
            writer.record("n2", 22, TupleSent("detect/0", SINK, SOURCE, tau, 5))
            writer.record("n9", 23, TupleReceived(SINK, "detect/0", SOURCE, tau, 5))
            writer.record("n9", 24, TupleDelivered(SINK, SOURCE, tau, 5, born_ns))
    writer.record("n2", 30, TupleDropped("detect/0", SOURCE, 3, 30, "expired"))
    for node in ("n1", "n2", "n9"):
        writer.record(node, 112, AgentStop("stopped"))
    return writer.write()


def summary_in(directory: Path) -> dict[str, Any]:
    summary: dict[str, Any] = json.loads((directory / "summary.json").read_text())
    return summary


def rows(spark: SparkSession, runs: Path, table: str, run: str) -> list[dict[str, Any]]:
    return [row.asDict() for row in TableStore(runs).read(spark, table, [run]).collect()]


def test_every_figure_of_a_known_run(analysed: Analysed) -> None:
    summary = summary_in(analysed["known"])
    assert summary["metrics"] == {
        "emitted": 100,
        "delivered": 90,
        "duplicates": 1,
        "in_flight_at_end": 2,  # one on a link within the grace, one held by a living agent
        "lost": 8,
        "loss_ratio": round(8 / 98, 9),
        "shed": 5,
        "shed_ratio": round(5 / 98, 9),
        "network_loss_ratio": round(3 / 93, 9),
        "fates": {
            "delivered": 90,
            "dropped:source_buffer_full": 5,
            "in_flight_at_end": 2,
            "lost_in_transit": 3,
        },
        # From the first arrival in the window (10.2 s, born before it) to the last (108 s), 90 more arrivals.
        "throughput_fps": round(90 / 97.8, 9),
        "throughput_kbps": round(90 * 500 * 8 / 1000 / 97.8, 9),
        "goodput_fps": 0.91,
        "goodput_kbps": 0.91 * 500 * 8 / 1000,
        "offered_fps": 1.0,
        "latency_mean_s": 0.55,
        "latency_p50_s": 0.55,
        "latency_p95_s": 1.0,
        "latency_p99_s": 1.0,
        "latency_max_s": 1.0,
        # 20 s: 0 → 1, and 52 s: 1 → none → 0. At 33 s it returns to the same; 1 s and 111 s are outside.
        # What detect/1 decides at 40 s and 41 s does not count: it carries nothing.
        "switches": 2,
        "no_route_s": 5.0,
        "source_sink_connected_ratio": 0.8,
        "routing_overhead": {},
        "routing_overhead_bps": None,  # nothing was counted
        **FURTHER,
    }
    assert (summary["schema"], summary["run"], summary["verdict"]) == (1, "007", "valid")
    assert summary["telemetry"]["records"] == 683
    assert summary["telemetry"]["incomplete_boots"] == 0


def test_damaged_telemetry_is_counted_and_the_rest_is_used(
    spark: SparkSession, runs: Path, analysed: Analysed
) -> None:
    summary = summary_in(analysed["damaged"])
    assert summary["telemetry"] == {
        "boots": 5,
        "incomplete_boots": 2,
        "records": 683 - 2 + 2,
        "missing": 1,
        "duplicates": 2,
        "corrupt_lines": 1,
        "refused": 0,
        "never_emitted": 0,
    }
    nodes = {(row["node"], row["boot"]): row for row in rows(spark, runs, "nodes", "d1")}
    assert (nodes["n3", 1]["missing"], nodes["n3", 1]["complete"]) == (1, False)
    assert (nodes["n2", 1]["corrupt_lines"], nodes["n2", 1]["stopped"]) == (1, False)
    assert nodes["n9", 1]["duplicates"] == 2
    assert nodes["n2", 2]["complete"]
    # What came twice counts once; what n2 held when its agent died is lost.
    assert summary["metrics"]["delivered"] == 90
    assert summary["metrics"]["fates"]["lost_in_transit"] == 4


def test_tables_of_a_known_run(spark: SparkSession, runs: Path, analysed: Analysed) -> None:
    tables = {name: rows(spark, runs, name, "007") for name in registry.tables()}
    of_tau = {row["tau"]: row for row in tables["tuples"]}
    assert len(of_tau) == len(tables["tuples"]) == 101
    assert of_tau[10]["latency_ns"] == 100_000_000
    assert (of_tau[10]["delivered_at"], of_tau[10]["duplicates"]) == ("sink/0", 1)
    assert (of_tau[5]["fate"], of_tau[5]["dropped_at"]) == ("dropped:source_buffer_full", SOURCE)
    assert (of_tau[1]["in_window"], of_tau[1]["delivered"]) == (False, True)
    hops = [row for row in tables["hops"] if row["tau"] == 19]
    assert [(hop["sender"], hop["receiver"]) for hop in hops] == [
        ("detect/0", "sink/0"),
        (SOURCE, "detect/0"),
    ]
    assert hops[1]["received_ns"] - hops[1]["sent_ns"] == 250_000_000
    changed = [row["changed"] for row in tables["switches"] if row["replica"] == SOURCE]
    assert changed == [False, True, False, False, False, True, True]
    assert sum(row["changed"] and row["in_window"] for row in tables["switches"]) == 4
    assert [row["cost"] for row in tables["costs"] if row["replica"] == "detect/1"] == [2.0, None]
    links = {(row["src"], row["dst"], row["up_ns"]): row["down_ns"] for row in tables["links_truth"]}
    assert links["n2", "n9", 0] == 60_000_000_000
    assert links["n2", "n9", 80_000_000_000] is None
    assert len(tables["positions"]) == 4 * 113
    assert [(row["attempted"], row["delivered"]) for row in tables["deliveries"]] == [(10, 9), (30, 12)]
    result = json.loads(TableStore(runs).results("007").read_bytes())
    series = result["series"]
    (used,) = series["links"]
    assert used == [40, 21, pytest.approx(0.7)]
    seen = {moment[0]: moment[1:] for moment in series["neighbours"]}
    assert len(seen) == 112
    assert (seen[59.0], seen[60.0], seen[80.0]) == ([0.75, 0, 2], [0.5, 0, 2], [0.75, 0, 2])
    away = dict(result["apps"]["query"]["series"]["hops"])
    assert (len(away), away[59.0], away[60.0], away[80.0]) == (112, 2, None, 2)
    (row,) = tables["runs"]
    assert row["factors"] == {"replicas": "2"}
    assert row["verdict"] == "valid"
    (app,) = tables["apps"]
    assert (app["app"], app["kind"]) == ("query", "query")
    assert (app["source_nodes"], app["sink_nodes"]) == (["n1"], ["n9"])
    assert row["started"].isoformat() == "2026-03-01T12:00:00"


def test_equal_telemetry_gives_equal_bytes(analysed: Analysed) -> None:
    """But for the run's id; in the report that is all there is of it, too."""
    files = [(analysed[name] / "summary.json").read_text() for name in ("known", "repeated")]
    assert files[0] == files[1].replace('"run": "007-again"', '"run": "007"')
    pages = [write_report(analysed[name]).read_text() for name in ("known", "repeated")]
    assert pages[0] == pages[1].replace("007-again", "007")


def test_a_sweep_is_summarised_by_cell(analysed: Analysed) -> None:
    sweep = analysed["sweep"]
    summary = summary_in(sweep)
    one, three = summary["cells"]
    # k + seed tuples a second: 2 and 3 with k = 1, 4 and 5 with k = 3.
    assert one["metrics"]["throughput_fps"] == {"mean": 2.5, "sd": 0.707106781, "n": 2}
    assert three["metrics"]["throughput_fps"]["mean"] == 4.5
    assert three["versus"]["ratios"]["throughput_fps"]["mean"] == round((4 / 2 + 5 / 3) / 2, 9)
    assert three["versus"]["ratios"]["throughput_fps"]["ratio_of_means"] == round(9 / 5, 9)
    assert three["versus"]["ratios"]["latency_p95_s"]["mean"] == pytest.approx(1 / 3)
    assert three["metrics"]["switches"]["mean"] == 5
    members = sorted(sweep.parent.glob(f"{sweep.name}.*"))
    assert [run["run"] for run in summary["runs"]] == [member.name for member in members]
    assert all(summary_in(member)["metrics"]["loss_ratio"] == 0.0 for member in members)
    page = write_report(sweep).read_text()
    assert "k = 3" in page
    assert "2 paired runs" in page and "are no result yet" in page
    assert page.count("<svg") == 8


def test_a_run_that_recorded_or_delivered_nothing_is_no_crash(analysed: Analysed) -> None:
    nothing, held, single = (summary_in(analysed[name])["metrics"] for name in ("silent", "idle", "lonely"))
    assert (nothing["emitted"], nothing["throughput_fps"], nothing["loss_ratio"]) == (0, 0.0, None)
    assert (held["emitted"], held["in_flight_at_end"], held["latency_p95_s"]) == (20, 20, None)
    assert held["no_route_s"] == 100.0  # the source never reported a route
    assert (single["delivered"], single["throughput_fps"], single["latency_p50_s"]) == (1, 0.0, 0.5)
    assert summary_in(analysed["silent"])["notes"] == summary_in(analysed["lonely"])["notes"] == []
    (note,) = summary_in(analysed["idle"])["notes"]
    assert note.startswith("nothing was delivered in the measured window, although the radio had a way")
    assert note in unescape(write_report(analysed["idle"]).read_text())
    page = write_report(analysed["silent"]).read_text()
    assert "Nothing was delivered" in page
    assert "&lt;b&gt;no&lt;/b&gt; nodes" in page
    assert "<svg" in write_report(analysed["idle"]).read_text()


def test_a_tuple_held_by_an_agent_that_crashed_is_lost(analysed: Analysed) -> None:
    assert summary_in(analysed["crashed"])["metrics"]["fates"] == {"lost_in_transit": 1}


def test_faults_and_lives_are_in_the_clock_of_the_figures(runs: Path, analysed: Analysed) -> None:
    series = json.loads(TableStore(runs).results("c1").read_bytes())["series"]
    assert series["faults"] == [["crash", "n2", 22.0, 29.5, ""]]
    assert series["boots"] == {"n1": [[0.0, 112.0]], "n2": [[0.0, 21.0], [30.0, 112.0]]}


def test_what_operators_passed_over_is_counted_by_kind_over_replicas_and_boots(analysed: Analysed) -> None:
    assert summary_in(analysed["crashed"])["operator_faults"] == {"bad_image": 3, "camera_lost": 1}
    assert summary_in(analysed["known"])["operator_faults"] == {}
    assert "bad image 3 ×, camera lost 1 ×" in write_report(analysed["crashed"]).read_text()


def test_what_operators_take_or_leave_is_not_lost(analysed: Analysed) -> None:
    metrics = summary_in(analysed["windowed"])["metrics"]
    assert metrics["fates"] == {"absorbed": 3, "delivered": 1, "dropped:dead_letter": 1, "filtered": 1}
    assert (metrics["emitted"], metrics["lost"], metrics["loss_ratio"]) == (6, 1, 0.5)


def test_records_of_several_tuples_mean_the_same_as_one_for_each(
    spark: SparkSession, runs: Path, analysed: Analysed
) -> None:
    alone, together = (summary_in(analysed[name]) for name in ("one_by_one", "together"))
    assert together["metrics"] == alone["metrics"]
    assert together["metrics"]["fates"] == {"delivered": 2, "dropped:expired": 1}
    assert (alone["telemetry"]["records"], together["telemetry"]["records"]) == (25, 14)
    for table in ("tuples", "hops"):
        told = [rows(spark, runs, table, run) for run in ("one_by_one", "together")]
        assert [row | {"run": ""} for row in told[0]] == [row | {"run": ""} for row in told[1]]


def test_what_routing_costs(spark: SparkSession, runs: Path, analysed: Analysed) -> None:
    """From the last sample before the window to the first after it, 9 s to 114 s; the mean of two nodes."""
    metrics = summary_in(analysed["routed"])["metrics"]
    # The daemon of n2 told of 5,000 bytes before it was started anew, and of 50 since.
    hellos = round((8 * 100 + 8 * 5050 / 105) / 2, 9)
    assert metrics["routing_overhead"] == {
        "LQ_HELLO": {"sent_bps": hellos, "forwarded_bps": 0.0},
        "LQ_TC": {"sent_bps": 40.0, "forwarded_bps": 160.0},
    }
    assert metrics["routing_overhead_bps"] == pytest.approx(hellos + 200)
    samples = rows(spark, runs, "overhead", "o1")
    assert [row["sent_bytes"] for row in samples if row["node"] == "n2"] == [400, 900, 5900, 50, 50]
    page = write_report(analysed["routed"]).read_text()
    assert "Control overhead by message kind" in page
    assert "200 <small>(160)</small>" in page
    assert "Control overhead" not in write_report(analysed["known"]).read_text()


def test_a_verdict_given_after_the_analysis_needs_no_other_one(
    spark: SparkSession, runs: Path, analysed: Analysed
) -> None:
    """No session is given here, and a second one could not be opened beside that of the tests."""
    directory = analysed["lonely"]
    before = summary_in(directory)
    assert analyze([directory]) == [before]
    judged = {"verdict": "failed", "reasons": ["expected more"], "phases": []}
    (directory / "verdict.json").write_text(json.dumps(judged))
    after = analyze([directory])[0]
    assert after == before | {"verdict": "failed", "reasons": ["expected more"]}
    (row,) = rows(spark, runs, "runs", "l1")
    assert (row["verdict"], row["reasons"], row["seed"]) == ("failed", ["expected more"], 1)
    assert row["started"].isoformat() == "2026-03-01T12:00:00"
    assert analyze([directory]) == [after]


def test_changed_telemetry_replaces_the_tables_and_a_crash_leaves_no_half(
    spark: SparkSession, runs: Path, analysed: Analysed, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = analysed["repeated"]
    segment = directory / "nodes" / "n9" / "segments" / "b0001-s000002.jsonl"
    lines = segment.read_bytes().splitlines(keepends=True)
    segment.write_bytes(b"".join(line for line in lines if b'"tau":99,' not in line))
    store = TableStore(runs)
    before = rows(spark, runs, "tuples", "007-again")
    rename, renames = Path.rename, 0

    def crashing_rename(path: Path, target: Path) -> Path:
        nonlocal renames
        renames += 1
        if renames == 20:
            raise KeyboardInterrupt
        return rename(path, target)

    with monkeypatch.context() as crash, pytest.raises(KeyboardInterrupt):
        crash.setattr(Path, "rename", crashing_rename)
        analyze([directory], spark=spark)
    assert rows(spark, runs, "tuples", "007-again") == before
    assert analyze([directory], spark=spark)[0]["metrics"]["delivered"] == 89
    assert len(rows(spark, runs, "tuples", "007-again")) == 101
    assert not (store.root / "staging").exists()
    named = {file.path for file in store.state.files}
    assert {path.relative_to(store.root).as_posix() for path in store.root.glob("*/*.parquet")} == named


def test_other_rules_of_the_intake_make_kept_results_old(
    spark: SparkSession, analysed: Analysed, monkeypatch: pytest.MonkeyPatch
) -> None:
    stages: list[str] = []
    monkeypatch.setattr("orchestrator.analytics.intake.rules.INTAKE_VERSION", 99)
    before = summary_in(analysed["lonely"])
    assert analyze([analysed["lonely"]], lambda stage, _: stages.append(stage), spark=spark) == [before]
    assert "reading telemetry of 1 run" in stages
    stages.clear()
    analyze([analysed["lonely"]], lambda stage, _: stages.append(stage), spark=spark)
    assert stages == ["writing summaries", "done"]


def test_a_directory_that_is_no_run_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x" / "y").mkdir(parents=True)
    with pytest.raises(BadInput, match=r"has no manifest\.json"):
        analyze([tmp_path / "x" / "y"])
