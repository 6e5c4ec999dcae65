"""A node is believed only about itself: what it writes of others, or cannot know, makes the run invalid."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from node_agent.apps.dataflow.events import (
    LinkCost,
    QueueSample,
    RouteSwitch,
    TupleDelivered,
    TupleDropped,
    TupleEmitted,
    TupleReceived,
    TupleSent,
)
from node_agent.apps.dataflow.faces.events import FacesTrue
from node_agent.apps.dataflow.model.plan import DeploymentPlan, Replica
from node_agent.apps.dataflow.model.query import OperatorSpec, Query
from node_agent.apps.dataflow.model.units import CountWindow
from node_agent.model.telemetry import AgentStart, AgentStop, Event, RefusalCount
from orchestrator.runs.run_directory import RunDirectory
from orchestrator.runs.verdict import Judgement, Verdict
from tests.unit.orchestrator.lifecycle.test_run import documents, perform
from tests.unit.scripted_backend import ScriptedBackend, Stage

# Of experiments/line.yaml: camera/0 on a, detect/0 on b, nothing on c, recognise/0 on d, screen/0 on e.
CAMERA, DETECT, RECOGNISE, SCREEN = "camera/0", "detect/0", "recognise/0", "screen/0"


def line(run: str, node: str, seq: int, event: Event, boot: int = 1) -> bytes:
    envelope = {"run": run, "node": node, "boot": boot, "seq": seq, "t_ns": 5}
    return msgspec.json.encode({**envelope, **msgspec.to_builtins(event)}) + b"\n"


def segment(root: Path, node: str, name: str = "b0001-s000001.jsonl") -> Path:
    return root / "line" / "r1" / "nodes" / node / "segments" / name


def insert(root: Path, node: str, *events: Event, claim: str | None = None, run: str = "r1") -> None:
    """Before the last record of ``node``'s log, as if its agent had written them."""
    path = segment(root, node)
    *most, last = path.read_bytes().splitlines(keepends=True)
    new = [line(run, claim or node, len(most) + place, event) for place, event in enumerate(events)]
    stop = {**json.loads(last), "seq": len(most) + len(events)}
    path.write_bytes(b"".join([*most, *new]) + json.dumps(stop).encode() + b"\n")


def judged(root: Path, tamper: Callable[[], None]) -> Verdict:
    async def meanwhile(backend: ScriptedBackend) -> None:
        tamper()

    (run,) = perform(root, Stage(collect=meanwhile)).runs
    return run.verdict


def test_what_nodes_can_know_is_believed(tmp_path: Path) -> None:
    def truth() -> None:
        insert(tmp_path, "a", TupleEmitted(CAMERA, CAMERA, 1, 9), TupleSent(CAMERA, DETECT, CAMERA, 1, 9))
        insert(tmp_path, "b", TupleReceived(DETECT, CAMERA, CAMERA, 1, 9), QueueSample(DETECT, "input", 0))
        insert(tmp_path, "d", TupleDropped(RECOGNISE, CAMERA, 2, 9, "expired", "screen"))
        insert(
            tmp_path,
            "e",
            TupleDelivered(SCREEN, CAMERA, 1, 9, 5),
            TupleDropped(SCREEN, CAMERA, 3, 0, "filtered"),
        )

    verdict = judged(tmp_path, truth)
    assert (verdict.verdict, verdict.reasons) == (Judgement.VALID, ())


def test_records_in_the_name_of_another_node_are_refused(tmp_path: Path) -> None:
    """Row 4: node c had no part in the query, and made loss vanish."""

    def forge() -> None:
        events = [TupleDelivered(SCREEN, CAMERA, tau, 9, 5) for tau in range(1, 38)]
        insert(tmp_path, "c", *events, claim="e")

    verdict = judged(tmp_path, forge)
    assert verdict.verdict is Judgement.INVALID
    assert verdict.reasons == ("records refused: 37 of node c (37 name another node)",)
    _, document, _ = documents(RunDirectory(tmp_path / "line" / "r1"))
    told = {"by": "orchestrator", "what": "record", "source": "c", "reason": "node", "count": 37}
    assert document["refused"] == [told]


@pytest.mark.parametrize(
    ("node", "event", "reason"),
    [
        ("c", TupleDelivered(SCREEN, CAMERA, 1, 9, 5), "name a replica of another node"),
        ("b", QueueSample("detect/1", "input", 0), "name a replica of another node"),
        ("b", TupleEmitted(DETECT, CAMERA, 1, 9), "name a stream that does not pass there"),
        ("b", FacesTrue(DETECT, CAMERA, 1, ()), "name a stream that does not pass there"),
        ("b", TupleReceived(DETECT, CAMERA, "other/0", 1, 9), "name a stream that does not pass there"),
        ("b", TupleDelivered(DETECT, CAMERA, 1, 9, 5), "deliver where there is no sink"),
        ("b", TupleReceived(DETECT, SCREEN, CAMERA, 1, 9), "name a replica that nothing is exchanged with"),
        ("b", TupleSent(DETECT, SCREEN, CAMERA, 1, 9), "name a replica that nothing is exchanged with"),
        ("b", LinkCost(DETECT, CAMERA, 1.0, "etx", "olsr"), "name a replica that nothing is exchanged with"),
        (
            "b",
            RouteSwitch(DETECT, "recognise", None, SCREEN, None, 1.0, "olsr"),
            "name a replica that nothing is exchanged with",
        ),
        ("b", TupleDropped(DETECT, CAMERA, 1, 9, "absorbed"), "name a fate that no tuple has there"),
        ("b", TupleDropped(DETECT, CAMERA, 1, 9, "filtered"), "name a fate that no tuple has there"),
    ],
)
def test_what_a_node_cannot_know_is_refused(tmp_path: Path, node: str, event: Event, reason: str) -> None:
    verdict = judged(tmp_path, lambda: insert(tmp_path, node, event))
    assert verdict.reasons == (f"records refused: 1 of node {node} (1 {reason})",)


def test_records_of_another_run_are_refused(tmp_path: Path) -> None:
    verdict = judged(tmp_path, lambda: insert(tmp_path, "c", RefusalCount("a", "b", "c", 1), run="r0"))
    assert verdict.reasons == ("records refused: 1 of node c (1 name another run)",)


def test_deliveries_of_what_nobody_emitted_are_counted(tmp_path: Path) -> None:
    def forge() -> None:
        insert(tmp_path, "a", TupleEmitted(CAMERA, CAMERA, 1, 900, 100))
        insert(tmp_path, "e", TupleDelivered(SCREEN, CAMERA, 90, 189, 5, 21))

    verdict = judged(tmp_path, forge)
    assert verdict.reasons == ("records refused: node e delivered 10 tuples that nobody emitted",)


def test_a_maker_whose_log_is_cut_short_explains_them(tmp_path: Path) -> None:
    def crash() -> None:
        insert(tmp_path, "e", TupleDelivered(SCREEN, CAMERA, 90, 9, 5))
        path = segment(tmp_path, "a")
        path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))

    reasons = judged(tmp_path, crash).reasons
    assert reasons == ("telemetry incomplete: 1 × agents not stopped in order (a)",)


def test_windows_make_streams_of_their_own() -> None:
    from node_agent.apps.dataflow.belief import scope_of

    operators = (
        OperatorSpec("left", "x"),
        OperatorSpec("sum", "x", ("left",), takes=CountWindow(2, 2)),
        OperatorSpec("out", "x", ("sum",)),
    )
    replicas = (
        Replica("left", 0, "n.*"),
        Replica("sum", 0, "b"),
        Replica("sum", 1, "c"),
        Replica("out", 0, "d"),
    )
    plan = DeploymentPlan(Query("q", operators), replicas)
    left, one, _, out = (scope_of(replica, plan) for replica in replicas)
    assert (left.makes, one.makes, out.makes) == (("left/0",), ("sum",), ())
    assert (one.carries, out.carries) == (("left/0", "sum"), ("sum",))
    assert one.senders == ("left/0", "sum/1")
    assert one.receivers == ("out/0", "sum/1")
    assert (left.never_says, one.never_says, out.never_says) == (
        ("filtered", "absorbed"),
        ("filtered",),
        ("absorbed",),
    )


def test_who_was_turned_away_is_told_and_the_run_stays_valid(tmp_path: Path) -> None:
    def siege() -> None:
        counts = [RefusalCount("connection", "10.77.0.9", "forged", n) for n in (3, 700, 1200)]
        insert(tmp_path, "b", *counts)
        insert(tmp_path, "d", RefusalCount("connection", "10.77.0.9", "forged", 4))

    verdict = judged(tmp_path, siege)
    assert verdict.verdict is Judgement.VALID
    told = [(each.by, each.what, each.source, each.reason, each.count) for each in verdict.refused]
    assert told == [
        ("b", "connection", "10.77.0.9", "forged", 1200),
        ("d", "connection", "10.77.0.9", "forged", 4),
    ]


def test_a_node_that_lost_its_disk_and_counts_from_one_again_is_noticed(tmp_path: Path) -> None:
    """Row 11: killed as asked, started again on an empty disk, its second boot is numbered 1."""

    def lose_the_disk() -> None:
        with (tmp_path / "line" / "r1" / "events.jsonl").open("a") as events:
            for action in ("crash", "restart"):
                events.write(json.dumps({"kind": "fault", "action": action, "node": "b", "t_ns": 5}) + "\n")
        segment(tmp_path, "b").unlink()
        segment(tmp_path, "b").write_bytes(
            line("r1", "b", 0, AgentStart("0", "virtual", ())) + line("r1", "b", 1, AgentStop("end"))
        )

    reasons = judged(tmp_path, lose_the_disk).reasons
    assert reasons == ("telemetry incomplete: 1 × agents of whose records nothing is left (b)",)


def test_a_boot_that_nobody_started_is_noticed(tmp_path: Path) -> None:
    def begin_anew() -> None:
        boot = [AgentStart("0", "virtual", ()), AgentStop("end")]
        path = segment(tmp_path, "b", "b0002-s000001.jsonl")
        path.write_bytes(b"".join(line("r1", "b", seq, event, boot=2) for seq, event in enumerate(boot)))

    reasons = judged(tmp_path, begin_anew).reasons
    assert reasons == ("telemetry incomplete: 1 × agents that nobody started (b)",)


def test_a_renamed_run_is_judged_by_the_name_in_its_records(tmp_path: Path) -> None:
    from orchestrator.lifecycle.examination import examine
    from orchestrator.runs.manifest import apps_in

    judged(tmp_path, lambda: None)
    place = RunDirectory((tmp_path / "line" / "r1").rename(tmp_path / "line" / "r2"))
    manifest, _, _ = documents(place)
    found = examine(place, ["a", "b"], apps_in(manifest), manifest["run"]).completeness
    assert {node: each.refused for node, each in found.items()} == {"a": 0, "b": 0}


def test_a_sink_cannot_fill_the_memory_nor_hide_what_nobody_emitted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from orchestrator.apps.dataflow import examiner

    monkeypatch.setattr(examiner, "MOST_SPANS", 8)

    def forge() -> None:
        insert(tmp_path, "a", TupleEmitted(CAMERA, CAMERA, 1, 900, 100))
        insert(
            tmp_path,
            "e",
            *(TupleDelivered(SCREEN, CAMERA, tau, 9, 5) for tau in (*range(1, 100, 2), 200, 202)),
        )

    assert judged(tmp_path, forge).reasons == (
        "records refused: node e delivered 2 tuples that nobody emitted",
    )


def spoil(path: Path, raw: bytes) -> None:
    path.write_bytes(path.read_bytes() + raw + b"\n")


def hostile_record(**fields: Any) -> bytes:
    record = {"run": "r1", "node": "b", "boot": 1, "seq": 2, "t_ns": 5, "kind": "tuple_sent"}
    record |= {"replica": DETECT, "to": RECOGNISE, "origin": CAMERA, "tau": 1, "size": 9}
    return json.dumps({**record, **fields}).encode()


HOSTILE = {
    "deep": (b'{"run":"r1","node":"b","boot":1,"seq":9,"t_ns":1,"kind":"x","odd":' + b"[" * 100_000, "depth"),
    "tuples": (hostile_record(tuples=3_000_000_000), "malformed"),
    "no tuples": (hostile_record(tuples=0), "malformed"),
    "late": (hostile_record(tau=2**63 - 1), "malformed"),
    "beyond": (hostile_record(tau=2**64), "malformed"),
    "negative": (hostile_record(size=-1), "malformed"),
    "sizes": (hostile_record(tuples=3, sizes=[1, 2]), "extent"),
    "no tau": (hostile_record(tau=None), "incomplete"),
    "a field of another kind": (hostile_record(downstream="screen"), "field"),
    "an empty field of another kind": (hostile_record(births=[]), "field"),
    "NaN": (hostile_record(cost=float("nan")), "malformed"),
    "not UTF-8": (hostile_record(reason="?").replace(b"?", b"\xff\xfe"), "malformed"),
    "long": (hostile_record(reason="x" * (1 << 20)), "size"),
    "other boot": (hostile_record(boot=7), "boot"),
    "text": (hostile_record(t_ns="soon"), "malformed"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_line_is_counted_and_nothing_else(tmp_path: Path, name: str) -> None:
    """Row 7: one line left a run without a verdict."""
    raw, reason = HOSTILE[name]
    verdict = judged(tmp_path, lambda: spoil(segment(tmp_path, "b"), raw))
    assert verdict.reasons == ("telemetry incomplete: 1 × lines corrupt (b)",)
    assert verdict.completeness["b"].reasons == {reason: 1}
    assert verdict.completeness["b"].records == 4


@pytest.mark.parametrize(
    "name",
    [
        "b99999999999999999999-s000001.jsonl",
        "b٠٠٠٢-s٠٠٠٠٠١.jsonl",
        "b00001-s000001.jsonl",
        "b0002-s000001.jsonl\n",
    ],
)
def test_a_name_that_no_log_gives_is_passed_over(tmp_path: Path, name: str) -> None:
    def place() -> None:
        segment(tmp_path, "b", name).write_bytes(b"{}\n")

    verdict = judged(tmp_path, place)
    assert verdict.verdict is Judgement.VALID


@pytest.mark.timeout(60)
@pytest.mark.parametrize("kind", ["link", "directory", "pipe"])
def test_only_regular_files_are_opened(tmp_path: Path, kind: str) -> None:
    outside = tmp_path / "outside.jsonl"

    def place() -> None:
        path = segment(tmp_path, "b", "b0001-s000002.jsonl")
        outside.write_bytes(hostile_record(seq=4) + b"\n")
        make: dict[str, Callable[[], None]] = {
            "link": lambda: path.symlink_to(outside),
            "directory": path.mkdir,
            "pipe": lambda: os.mkfifo(path),
        }
        make[kind]()

    verdict = judged(tmp_path, place)
    assert verdict.completeness["b"].reasons == {"file": 1}
    assert verdict.completeness["b"].records == 4


@pytest.mark.timeout(60)
def test_documents_that_cannot_be_read_are_none(tmp_path: Path) -> None:
    from orchestrator.runs.files import parse_lines, read_json

    deep, pipe, link, nowhere = (tmp_path / name for name in ("deep", "pipe", "link", "nowhere"))
    deep.write_bytes(b'{"in_order":' + b"[" * 100_000)
    os.mkfifo(pipe)
    (tmp_path / "true").write_text("true")
    link.symlink_to(tmp_path / "true")
    assert [read_json(path) for path in (deep, pipe, link, nowhere, tmp_path)] == [None] * 5
    assert parse_lines(b'{"a":1}\n' + deep.read_bytes() + b'\n[]\n{"b":2}\n{"c"') == [{"a": 1}, {"b": 2}]


def test_a_file_name_that_is_no_text_leaves_a_verdict(tmp_path: Path) -> None:
    def place() -> None:
        (segment(tmp_path, "b").parent.parent / os.fsdecode(b"\xff\xfe")).write_bytes(b"x")

    assert judged(tmp_path, place).verdict is Judgement.VALID
