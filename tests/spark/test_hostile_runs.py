"""Runs in which somebody lies, and queries with several sinks: the analysis counts what is true, and ends."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from node_agent.apps.dataflow.events import (
    SpillSample,
    TupleDelivered,
    TupleDropped,
    TupleEmitted,
    TupleReceived,
    TupleSent,
)
from node_agent.apps.dataflow.model.plan import Replica
from node_agent.apps.dataflow.model.query import OperatorSpec
from node_agent.model.telemetry import KILLED, AgentStart, AgentStop, Event
from orchestrator.analytics.kept import is_result
from orchestrator.analytics.pipeline import analyze
from orchestrator.analytics.store import TableStore
from orchestrator.results.inputs import runs_in
from orchestrator.runs.files import read_json
from tests.synthetic_runs import END_S, SINK, SOURCE, RunWriter, deliver, ns

pytestmark = pytest.mark.timeout(300)

ODD = "n [1]%20+é"
"""A directory that is not to be taken for a pattern or a URI."""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def analysed(spark: SparkSession, runs: Path) -> dict[str, dict[str, Any]]:
    """Summaries by name, of one analysis."""
    made = {
        "forged": forged_run(runs),
        "two": two_sinks(runs),
        "hostile": hostile_run(runs),
        "killed": killed_run(runs),
        "clocks": run_of_absurd_clocks(runs),
    }
    return dict(zip(made, analyze(list(made.values()), spark=spark), strict=True))


def begin(writer: RunWriter, *nodes: str) -> None:
    for node in nodes:
        writer.record(node, 0, AgentStart("0.1.0", "virtual", ()))


def end(writer: RunWriter, *nodes: str) -> None:
    for node in nodes:
        writer.record(node, END_S, AgentStop("stopped"))


def write(writer: RunWriter, node: str, **fields: Any) -> None:
    """A line that no agent writes."""
    lines = writer.lines(node)
    envelope = {"run": writer.run, "node": node, "boot": 1, "seq": len(lines), "t_ns": ns(30)}
    lines.append(json.dumps({**envelope, **fields}).encode())


def smuggle(writer: RunWriter, node: str, t_s: float, event: Event) -> None:
    """A record within a field of another, between carriage returns."""
    writer.record(node, t_s, event)
    inner = json.loads(writer.lines(node).pop()) | {"seq": 10_000 + round(t_s)}
    writer.record(node, t_s, SpillSample(0, 0, None))
    outer = writer.lines(node)[-1]
    writer.lines(node)[-1] = outer[:-1] + b',"x":[\r' + json.dumps(inner).encode() + b"\r]}"


def forged_run(root: Path) -> Path:
    """Of 10 tuples 4 arrived; n3 says in the name of the sink's node that the others did, too."""
    writer = RunWriter(root, "forged", "f1")
    begin(writer, "n1", "n2", "n3", "n9")
    for tau in range(1, 5):
        deliver(writer, tau, 20.0 + tau, 0.4)
    for tau in range(5, 11):
        writer.record("n1", 20.0 + tau, TupleEmitted(SOURCE, SOURCE, tau, 1000))
        writer.record("n1", 20.0 + tau, TupleSent(SOURCE, "detect/0", SOURCE, tau, 1000))
        writer.record("n3", 21.0 + tau, TupleDelivered(SINK, SOURCE, tau, 500, ns(20.0 + tau)))
        forged = json.loads(writer.lines("n3")[-1]) | {"node": "n9", "seq": 1000 + tau}
        writer.lines("n3")[-1] = json.dumps(forged).encode()
        # In kinds that nobody knows, and between ends of lines that only Spark would see.
        write(writer, "n3", kind="tuple_x", to=SINK, origin=SOURCE, tau=tau, born_ns=1)
        hidden = TupleDelivered(SINK, SOURCE, tau, 500, ns(20.0 + tau))
        smuggle(writer, "n9", 21.0 + tau, hidden)
    for tau in range(1, 5):
        write(writer, "n3", kind="tuple_x", to=SINK, origin=SOURCE, tau=tau, born_ns=1)
    for tau in (11, 12):  # and the sink itself delivers what was never emitted
        writer.record("n9", 31.0, TupleDelivered(SINK, SOURCE, tau, 500, ns(30.0)))
    end(writer, "n1", "n2", "n9")
    return writer.write(verdict="invalid")


def two_sinks(root: Path) -> Path:
    """400 tuples for two sinks: one gets all but 40 that are filtered on its branch, the other none."""
    writer = RunWriter(root, "two", "t1")
    source, detect, _ = writer.operators
    writer.operators = (
        source,
        detect,
        OperatorSpec("near", "collect", ("detect",)),
        OperatorSpec("far", "collect", ("detect",)),
    )
    writer.sinks = (Replica("near", 0, "n8"), Replica("far", 0, "n9"))
    begin(writer, "n1", "n2", "n8", "n9")
    for index in range(400):
        tau, t_s = index + 1, 20 + index / 10
        writer.record("n1", t_s, TupleEmitted(SOURCE, SOURCE, tau, 1000))
        writer.record("n1", t_s, TupleSent(SOURCE, "detect/0", SOURCE, tau, 1000))
        writer.record("n2", t_s + 0.1, TupleReceived("detect/0", SOURCE, SOURCE, tau, 1000))
        writer.record("n2", t_s + 0.2, TupleSent("detect/0", "near/0", SOURCE, tau, 1000))
        if index < 40:
            writer.record("n8", t_s + 0.3, TupleDropped("near/0", SOURCE, tau, 0, "filtered"))
        else:
            writer.record("n8", t_s + 0.3, TupleDelivered("near/0", SOURCE, tau, 1000, ns(t_s)))
        writer.record("n2", t_s + 0.9, TupleDropped("detect/0", SOURCE, tau, 1000, "expired", "far"))
    end(writer, "n1", "n2", "n8", "n9")
    return writer.write()


def killed_run(root: Path) -> Path:
    """Of 10 tuples 4 arrived, and 6 were at detect/0 when a fault killed its agent, in the simulator."""
    writer = RunWriter(root, "killed", "k1")
    begin(writer, "n1", "n2", "n9")
    for tau in range(1, 5):
        deliver(writer, tau, 20.0 + tau, 0.4)
    for tau in range(5, 11):
        writer.record("n1", 20.0 + tau, TupleEmitted(SOURCE, SOURCE, tau, 1000))
        writer.record("n1", 20.0 + tau, TupleSent(SOURCE, "detect/0", SOURCE, tau, 1000))
        writer.record("n2", 20.1 + tau, TupleReceived("detect/0", SOURCE, SOURCE, tau, 1000))
    writer.record("n2", 35, AgentStop(KILLED))
    end(writer, "n1", "n9")
    return writer.write()


def run_of_absurd_clocks(root: Path) -> Path:
    """The clocks of n1 and n9 are ages apart, and n9 writes down yet another time."""
    writer = RunWriter(root, "clocks", "c1")
    begin(writer, "n1", "n2", "n9")
    deliver(writer, 1, 50.0, 0.5)
    writer.record("n9", 0, TupleDelivered(SINK, SOURCE, 1, 500, 0))
    writer.lines("n9")[-1] = writer.lines("n9")[-1].replace(b'"t_ns":0', b'"t_ns":%d' % 2**62)
    end(writer, "n1", "n2", "n9")
    directory = writer.write(verdict="invalid")
    manifest = json.loads((directory / "manifest.json").read_text())
    told = {"n1": (0, 2**62, 1), "n9": (2**61, -(2**61), 1)}
    names = ("at_ns", "offset_ns", "uncertainty_ns")
    clocks = {node: {"samples": [dict(zip(names, sample, strict=True))]} for node, sample in told.items()}
    (directory / "manifest.json").write_text(json.dumps({**manifest, "clocks": clocks, "clock": "real"}))
    return directory


def hostile_lines(writer: RunWriter) -> list[bytes]:
    """Each is corrupt, whoever looks at it."""
    writer.record("n2", 30, TupleSent("detect/0", SINK, SOURCE, 1, 9))
    good = json.loads(writer.lines("n2").pop())

    def bad(**fields: Any) -> bytes:
        return json.dumps({**good, **fields}).encode()

    return [
        b'{"run":"h1","node":"n2","boot":1,"seq":9,"t_ns":1,"kind":"x","y":' + b"[" * 100_000,
        bad(tuples=3_000_000_000),
        bad(tuples=0),
        bad(tau=2**63 - 1),
        bad(tau=2**64),
        bad(size=-1),
        bad(tuples=3, sizes=[1, 2]),
        bad(tuples=2, sizes=[1, -2]),
        bad(tau=None),
        bad(downstream="sink"),
        bad(births=[]),
        bad(t_ns=2**63 - 1),
        bad(cost=float("nan")),
        bad(reason="?").replace(b"?", b"\xff\xfe"),
        bad(reason="x" * (1 << 20)),
        bad(boot=7),
        bad(t_ns="soon"),
        b"\x00\x00\x00",
    ]


def hostile_run(root: Path) -> Path:
    """One delivered tuple; n2 writes every kind of nonsense, and n9 times and births from another age."""
    writer = RunWriter(root, "hostile", "h1")
    begin(writer, "n1", "n2", "n9")
    deliver(writer, 1, 50.0, 0.5)
    for tau in range(2, 12):
        writer.record("n1", 60.0 + tau, TupleEmitted(SOURCE, SOURCE, tau, 2**50))
        writer.record("n9", 61.0 + tau, TupleDelivered(SINK, SOURCE, tau, 2**50, ns(60.0 + tau)))
    spoiled = hostile_lines(writer)
    end(writer, "n1", "n2", "n9")
    directory = writer.write(verdict="invalid")
    segments = directory / "nodes" / "n2" / "segments"
    (segments / "b0001-s000003.jsonl").write_bytes(b"\n".join(spoiled) + b"\n")
    (segments / "b0001-s000004.jsonl").mkdir()
    os.mkfifo(segments / "b0001-s000005.jsonl")
    (segments / "b0001-s000006.jsonl").symlink_to(directory / "manifest.json")
    for name in ("b99999999999999999999-s000001.jsonl", "b٠٠٠٢-s٠٠٠٠٠١.jsonl", "b00001-s000001.jsonl"):
        (segments / name).write_bytes(b"{}\n")
    os.mkfifo(directory / "nodes" / "n2" / "pipe.jsonl")
    odd = directory / "nodes" / ODD / "segments"
    odd.mkdir(parents=True)
    writer.record(ODD, 1, SpillSample(0, 0, None))
    (odd / "b0001-s000001.jsonl").write_bytes(writer.lines(ODD)[0] + b"\n")
    return directory


def test_a_node_cannot_forge_what_another_measured(analysed: dict[str, dict[str, Any]]) -> None:
    metrics, telemetry = analysed["forged"]["metrics"], analysed["forged"]["telemetry"]
    assert (metrics["emitted"], metrics["delivered"], metrics["loss_ratio"]) == (10, 4, 0.6)
    assert (telemetry["refused"], telemetry["never_emitted"]) == (6, 2)
    assert metrics["latency_max_s"] == 0.4


def test_absurd_clocks_do_not_stop_the_analysis(analysed: dict[str, dict[str, Any]]) -> None:
    assert analysed["clocks"]["telemetry"]["records"] == 14
    assert analysed["clocks"]["nodes"]["n9"] == {"records": 5, "corrupt_lines": 0, "refused": 0}


def test_results_are_private_and_taken_again(runs: Path, analysed: dict[str, dict[str, Any]]) -> None:
    assert (runs / ".tables").stat().st_mode & 0o777 == 0o700
    kept = [read_json(TableStore(runs).results(summary["run"])) for summary in analysed.values()]
    found = [runs_in(next(runs.glob(f"*/{summary['run']}")))[0] for summary in analysed.values()]
    assert all(map(is_result, kept, found))


def test_what_died_with_a_killed_agent_is_lost(analysed: dict[str, dict[str, Any]]) -> None:
    metrics = analysed["killed"]["metrics"]
    assert metrics["fates"] == {"delivered": 4, "lost_in_transit": 6}
    assert (metrics["lost"], metrics["in_flight_at_end"]) == (6, 0)


def test_every_tuple_owes_a_delivery_to_every_sink(analysed: dict[str, dict[str, Any]]) -> None:
    metrics = analysed["two"]["metrics"]
    assert (metrics["emitted"], metrics["delivered"], metrics["lost"]) == (400, 360, 400)
    assert metrics["loss_ratio"] == round(400 / 760, 9)
    assert metrics["fates"] == {"delivered": 360, "dropped:expired": 400, "filtered": 40}
    near, far = metrics["sinks"]["near"], metrics["sinks"]["far"]
    assert (near["owed"], near["delivered"], near["loss_ratio"]) == (400, 360, 0.0)
    assert (far["owed"], far["delivered"], far["loss_ratio"]) == (400, 0, 1.0)
    assert (near["latency_p50_s"], far["latency_p50_s"]) == (0.3, None)
    assert metrics["goodput_fps"] == near["goodput_fps"] == 3.6


def test_nonsense_is_counted_and_the_rest_is_used(
    spark: SparkSession, runs: Path, analysed: dict[str, dict[str, Any]]
) -> None:
    from node_agent.apps.dataflow.belief import scopes_of
    from node_agent.apps.records import record_format
    from node_agent.telemetry.belief import writers
    from node_agent.telemetry.segments import inspect

    metrics = analysed["hostile"]["metrics"]
    assert (metrics["delivered"], metrics["latency_max_s"]) == (11, 1.0)
    (run,) = runs_in(runs / "hostile" / "h1")
    table = {row["node"]: row for row in TableStore(runs).read(spark, "nodes", ["h1"]).collect()}
    assert set(table) == {"n1", "n2", "n9", ODD}
    apps = {"query": scopes_of(run.apps["query"].plan)}
    for node, writer in writers("h1", table, record_format(), apps).items():
        found = inspect(run.directory.segments(node), writer)
        row = table[node]
        told = (row["records"], row["missing"], row["duplicates"], row["corrupt_lines"], row["refused"])
        assert told == (found.records, found.missing, found.duplicates, found.corrupt, found.refused), node
    assert table["n2"]["corrupt_lines"] == 18 + 3
    assert table[ODD]["records"] == 1
