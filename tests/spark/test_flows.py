"""The analysis of flows whose truth is known: by one clock, by clocks of their own, with lies among them."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pyspark.sql import SparkSession

from node_agent.apps.flows.account import ReceivedAccount, SentAccount
from node_agent.apps.flows.events import FlowReceived, FlowSent
from node_agent.apps.flows.model import Flow
from node_agent.model.telemetry import AgentStart, AgentStop
from orchestrator.analytics.pipeline import analyze, write_report
from orchestrator.analytics.store import TableStore
from orchestrator.results.expectations import evaluate_expectations
from tests.synthetic_runs import END_S, FROM_S, UNTIL_S, RunWriter, ns

pytestmark = pytest.mark.timeout(240)

NODES = ("n1", "n9")
CLOCKS = {"n1": (3600.0, 40.0), "n9": (2.0, -40.0)}
VIDEO = Flow("video", "n1", "n9", "udp", 500, 40_000.0)
SILENT = Flow("silent", "n9", "n1", "udp", 500, 40_000.0)
PER_S = 10
LOST = range(40, 50)
"""Seconds in which every other packet is lost."""
LATE = 80
"""A packet of this second arrives two seconds late, after others."""
MS = 1_000_000


def clock(node: str, true_s: float, own: bool) -> int:
    """What a node's clock shows at a moment of the run; the run begins at an hour of its own."""
    ahead_s, ppm = CLOCKS[node] if own else (0.0, 0.0)
    return ns(true_s) + ns(ahead_s) + round(ns(true_s) * ppm / 1e6)


def arrivals() -> list[tuple[float, int, float]]:
    """When a packet arrives, its number and when it was sent; one packet comes twice."""
    found = []
    for number in range(PER_S * END_S):
        sent_s = number / PER_S
        if int(sent_s) in LOST and number % 2:
            continue
        delay_s = 2.05 if sent_s == LATE else 0.010 + 0.001 * (number % 20)
        if sent_s + delay_s < END_S:
            found.append((sent_s + delay_s, number, sent_s))
    return sorted([*found, (70.5, 690, 69.0)])


AGAIN = range(550, 600)
"""Packets that a sink has received, and is sent again after it was started anew at ``ANEW_S``."""
ANEW_S = 60


def received_record(**changes: Any) -> FlowReceived:
    record = FlowReceived("video", 1, 0, 0, 0, 0, 0, 0, 0, heard=(), arrived=())
    return msgspec.structs.replace(record, **changes)


CROOKED = (
    ("n9", received_record(heard=((),))),
    ("n9", received_record(heard=((30, 1, 500),))),
    ("n9", received_record(heard=((30, 0, 0, 0, 0, 0, 0, 0),))),
    ("n9", received_record(heard=((30, 1, 500, 0, 0, 0, 0, 0, 5),))),
    ("n9", received_record(heard=((30, 1, 500, 0, 0, 0, 0, 0, 2048, 1),))),
    ("n9", received_record(heard=((30, 1, 500, 0, 0, 0, 0, 0, 5, -1),))),
    ("n9", received_record(heard=((30, 2**53, 500, 0, 0, 0, 0, 0),))),
    ("n9", received_record(arrived=((30, 10, 500), ()))),
    ("n9", received_record(arrived=((30, 10, 500, 1),))),
    ("n9", received_record(arrived=((30, 1, 2**62),))),
    ("n1", FlowSent("video", 0, 0, 0, 0, 0, 0, 0, 0, ((),))),
    ("n1", FlowSent("video", 0, 0, 0, 0, 0, 0, 0, 0, ((2**62, 1, 1),))),
    ("n1", FlowSent("video", 0, 0, 0, 0, 0, 0, 0, 0, ((30, -1, 1),))),
)
"""Records with rows that no account has."""
ABSURD = received_record(heard=((2**31, 2**32, 2**40, 2**62, -(2**62), 2**62, -(2**40), 2**40, -800, 2**32),))
"""What the rules allow: nothing may come of it, and nothing may fail."""


def flow_run(
    root: Path, run: str, own: bool = False, lies: bool = False, crooked: bool = False, again: bool = False
) -> Path:
    writer = RunWriter(root, "flowing", run)
    writer.app = ""
    for node in NODES:
        writer.record(node, 0.0, AgentStart("0.1.0", "virtual", ()))
    writer.app = "load"
    # Nodes do not begin at the same moment: the sink 5 ms after the source.
    sent = SentAccount("video", clock("n1", 0.0, own))
    received = ReceivedAccount("video", 1, clock("n9", 0.005, own))
    waiting, boot = arrivals(), 1
    for second in range(END_S):
        if again and second == ANEW_S:
            boot, received = 2, ReceivedAccount("video", 1, clock("n9", ANEW_S, own))
            writer.app = ""
            writer.record("n9", ANEW_S, AgentStart("0.1.0", "virtual", ()), boot)
            writer.app = "load"
            for number in AGAIN:
                received.take(number, number // PER_S, 500, ns(number / PER_S), ns(ANEW_S + 0.001))
        for number in range(second * PER_S, (second + 1) * PER_S):
            sent.send(clock("n1", number / PER_S, own), 500)
        sample = sent.sample(clock("n1", second + 0.99, own))
        assert sample is not None
        if second % 3 or second == END_S - 1:  # the others are lost, and made up for
            writer.record("n1", second + 0.99, sample)
        while waiting and waiting[0][0] < second + 0.995:
            at_s, number, sent_s = waiting.pop(0)
            received.take(number, int(sent_s), 500, clock("n1", sent_s, own), clock("n9", at_s, own))
        heard = received.sample(clock("n9", second + 0.995, own))
        assert heard is not None
        if second % 3 or second == END_S - 1:
            writer.record("n9", second + 0.995, heard, boot)
    if crooked:
        for node, record in (*CROOKED, ("n9", ABSURD)):
            writer.record(node, END_S - 0.5, record)
    if lies:
        sample, heard = sent.sample(0), received.sample(0)
        assert sample is not None and heard is not None
        writer.record("n9", END_S - 0.5, sample)
        writer.record("n1", END_S - 0.5, heard)
    writer.app = ""
    for node in NODES:
        writer.record(node, END_S, AgentStop("stopped"), boot if node == "n9" else 1)
    if own:
        writer.own_clocks(CLOCKS, 0)
    directory = writer.write()
    manifest = json.loads((directory / "manifest.json").read_text())
    del manifest["plan"]
    manifest["apps"] = {"load": {"kind": "flows", "flows": msgspec.to_builtins((VIDEO, SILENT))}}
    (directory / "manifest.json").write_text(json.dumps(manifest))
    return directory


@pytest.fixture(scope="module")
def directories(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("runs")
    made = {
        "one": flow_run(root, "one"),
        "own": flow_run(root, "own", own=True),
        "lies": flow_run(root, "lies", lies=True),
        "crooked": flow_run(root, "crooked", crooked=True),
        "again": flow_run(root, "again", again=True),
    }
    analyze(list(made.values()), spark=spark)
    return made


def summary(directory: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((directory / "summary.json").read_text())
    return found


def check(metrics: dict[str, Any], tolerance_s: float) -> None:
    counted = PER_S * (UNTIL_S - 2 - FROM_S)
    lost = len(LOST) * PER_S // 2
    assert metrics["flow_delivery_ratio"] == pytest.approx((counted - lost) / counted, abs=1e-6)
    assert metrics["flow_offered_bps"] == PER_S * 500 * 8
    arrived = PER_S * (UNTIL_S - FROM_S) - lost
    assert metrics["flow_throughput_bps"] == pytest.approx(arrived * 4000 / (UNTIL_S - FROM_S), rel=0.003)
    assert metrics["flow_delay_mean_s"] == pytest.approx(0.0195 + 2.04 / (counted - lost), abs=1e-3)
    assert metrics["flow_delay_p50_s"] == pytest.approx(0.0195, abs=0.001 + tolerance_s)
    assert metrics["flow_delay_p95_s"] == pytest.approx(0.028, abs=0.001 + tolerance_s)
    assert metrics["flow_delay_max_s"] == pytest.approx(2.05, abs=1e-6 + tolerance_s)
    assert (metrics["flow_duplicates"], metrics["flow_reordered"]) == (1, 1)
    assert 0.001 < metrics["flow_jitter_s"] < 0.02
    silent = metrics["flows"]["silent"]
    assert (silent["sent_packets"], silent["delivery_ratio"], silent["throughput_bps"]) == (0, None, 0)


def test_the_figures_of_a_known_run(directories: dict[str, Path]) -> None:
    found = summary(directories["one"])
    check(found["metrics"], 0.0)
    assert found["apps"]["load"]["kind"] == "flows"
    held = ["flow_delivery_ratio > 0.9", "load.flow_delay_p95_s < 0.1"]
    assert evaluate_expectations(held, found) == []
    assert len(evaluate_expectations(["flow_delivery_ratio > 0.999"], found)) == 1


def test_clocks_of_their_own_change_nothing(directories: dict[str, Path]) -> None:
    check(summary(directories["own"])["metrics"], 0.001)


def test_only_the_ends_of_a_flow_are_believed(directories: dict[str, Path]) -> None:
    one, lies = summary(directories["one"]), summary(directories["lies"])
    assert lies["metrics"] == one["metrics"]
    assert lies["telemetry"]["refused"] == 2


def test_rows_that_no_account_has_are_corrupt(directories: dict[str, Path]) -> None:
    one, crooked = summary(directories["one"]), summary(directories["crooked"])
    assert crooked["metrics"] == one["metrics"]
    assert crooked["telemetry"]["corrupt_lines"] == len(CROOKED)


def test_what_a_sink_counts_again_is_no_delivery(spark: SparkSession, directories: dict[str, Path]) -> None:
    one, again = (summary(directories[run])["metrics"] for run in ("one", "again"))
    assert again["flow_delivery_ratio"] == one["flow_delivery_ratio"] < 1
    assert again["flow_duplicates"] == 1 + len(AGAIN)
    assert again["flow_delay_max_s"] == one["flow_delay_max_s"]
    store = TableStore(directories["again"].parent.parent)
    totals = {
        row["run"]: row
        for row in store.read(spark, "flow_totals", ["one", "again"]).collect()
        if row["flow"] == "video"
    }
    for name in ("received_packets", "received_bytes"):
        assert totals["again"][name] == totals["one"][name]


def test_the_tables(spark: SparkSession, directories: dict[str, Path]) -> None:
    store = TableStore(directories["one"].parent.parent)
    rows = {row["second"]: row for row in store.read(spark, "flows", ["one"]).collect()}
    assert len(rows) == END_S
    assert rows[20]["t_ns"] == ns(20)
    assert (rows[20]["sent_packets"], rows[20]["delivered_packets"]) == (10, 10)
    assert (rows[45]["sent_packets"], rows[45]["delivered_packets"]) == (10, 5)
    assert rows[LATE]["delivered_packets"] == 10 and rows[LATE]["delay_max_s"] == pytest.approx(2.05)
    assert rows[LATE]["arrived_packets"] < 10 < rows[LATE + 2]["arrived_packets"]
    (total,) = [row for row in store.read(spark, "flow_totals", ["one"]).collect() if row["flow"] == "video"]
    assert (total["source"], total["sink"], total["sent_packets"]) == ("n1", "n9", PER_S * END_S)
    assert total["duplicates"] == 1


def test_the_report_lists_and_draws_flows(spark: SparkSession, directories: dict[str, Path]) -> None:
    page = write_report(directories["one"], spark=spark).read_text()
    assert "Flows over time" in page and ">video<" in page
    assert "Nothing arrived" not in page, "what is never sent cannot arrive"
