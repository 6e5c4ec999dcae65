"""A run's directory may be somebody else's, or broken: what is refused is counted, and nothing hangs."""

import json
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.errors import RoveError
from orchestrator.live.core_view import RunView
from orchestrator.live.facts import RunFacts
from orchestrator.live.run import CannotShow, LiveRun
from orchestrator.live.run_clock import RunClock
from orchestrator.live.sources import EVENT, Events, Item
from orchestrator.live.tail import Tail
from orchestrator.runs.run_directory import RunDirectory
from tests.unit.orchestrator.live.reading import of, read
from tests.unit.rove_process import rove

pytestmark = pytest.mark.timeout(60)


def segment(run: RunDirectory, node: str) -> Path:
    return run.segments(node) / "b0001-s000001.jsonl"


def append_event(run: RunDirectory, kind: str, **facts: Any) -> None:
    """Puts an event right after the measurement began."""
    lines = run.events.read_text().splitlines()
    at = next(n for n, line in enumerate(lines) if '"measure"' in line and '"state": "started"' in line)
    event = {"t": json.loads(lines[at])["t"], "kind": kind, **facts}
    lines.insert(at + 1, json.dumps(event))
    run.events.write_text("\n".join(lines) + "\n")


def test_an_empty_directory_ends_with_nothing(tmp_path: Path) -> None:
    live = LiveRun(RunDirectory(tmp_path))
    for _ in range(3):
        assert live.poll() == []
    assert live.ended
    assert live.head["nodes"] == []


@pytest.mark.parametrize("manifest", ["", "[]", "{", '{"apps": 7}', '{"apps": {"q": {"kind": "no such"}}}'])
def test_a_manifest_that_says_nothing(copied: RunDirectory, manifest: str) -> None:
    copied.manifest.write_text(manifest)
    found = read(copied)
    assert {c.channel for c in found} <= {"event", "phase", "verdict", "position", "link", "record", "node"}


def test_a_spec_that_cannot_be_read_leaves_the_nodes_of_the_plan(copied: RunDirectory) -> None:
    copied.spec.write_text("!!python/object/apply:os.system ['touch /tmp/hacked']")
    live = LiveRun(copied)
    assert live.head["nodes"] == [f"n{number:02}" for number in range(1, 7)]
    assert live.head["area"] is None
    assert of(read(copied), "route")


def test_node_names_never_lead_out(copied: RunDirectory, tmp_path: Path) -> None:
    text = copied.spec.read_text()
    assert "nodes: 8" in text or "n08" in text
    copied.spec.write_text(text.replace("nodes: 8", "nodes: [n01, ../../../etc, /etc, n02]", 1))
    assert set(LiveRun(copied).head["nodes"]) <= {f"n{number:02}" for number in range(1, 9)}


def test_code_that_the_plan_names_is_not_run(copied: RunDirectory, tmp_path: Path) -> None:
    trap = tmp_path / "trap.py"
    trap.write_text(f"open({str(tmp_path / 'sprung')!r}, 'w')")
    manifest = json.loads(copied.manifest.read_text())
    manifest["apps"]["query"]["plan"]["query"]["module"] = str(trap)
    copied.manifest.write_text(json.dumps(manifest))
    assert of(read(copied), "route")
    assert not (tmp_path / "sprung").exists()


def test_links_pipes_and_directories_are_no_files(copied: RunDirectory, tmp_path: Path) -> None:
    target = segment(copied, "n01").rename(tmp_path / "moved.jsonl")
    segment(copied, "n01").symlink_to(target)
    segment(copied, "n02").unlink()
    os.mkfifo(segment(copied, "n02"))
    segment(copied, "n03").unlink()
    segment(copied, "n03").mkdir()
    os.mkfifo(copied.path / "host.jsonl")
    found = read(copied)
    assert of(found, "record", "n06")
    assert not of(found, "record", "n01")


def test_lines_that_are_torn_endless_or_nonsense_are_counted(copied: RunDirectory) -> None:
    whole = segment(copied, "n06").read_bytes()
    first, rest = whole.split(b"\n", 1)
    bad = [b"\x00\xff", b"[" * 5000, b'{"kind": ' + b"9" * 3_000_000, b"{}", first]
    segment(copied, "n06").write_bytes(first + b"\n" + b"\n".join(bad) + b"\n" + rest + b'{"run": "torn')
    found = read(copied)
    last = of(found, "record", "n06")[-1].value
    assert last["refused"] == len(bad)
    assert last["records"] == whole.count(b"\n")
    doubts = [c.value["so_far"] for c in of(found, "verdict") if "so_far" in c.value]
    assert doubts[-1] == [
        "telemetry incomplete: 1 × records twice (n06)",
        f"telemetry incomplete: {len(bad) - 1} × lines corrupt (n06)",
    ]
    assert read(copied, [3000]) == found


def test_a_node_is_believed_only_about_itself(copied: RunDirectory) -> None:
    stolen = segment(copied, "n06").read_bytes()
    with segment(copied, "n05").open("ab") as file:
        file.write(stolen)
    found = read(copied)
    last = of(found, "record", "n05")[-1].value
    assert last["refused"] == stolen.count(b"\n")
    doubts = [c.value["so_far"] for c in of(found, "verdict") if "so_far" in c.value]
    assert doubts[-1] == [
        f"records refused: {last['refused']} of node n05 ({last['refused']} name another node)"
    ]
    delivered = sum(c.value["out"] for c in of(found, "rate", "screen/0"))
    assert delivered == sum(c.value["out"] for c in of(read(copied), "rate", "screen/0"))


def test_an_absurd_time_moves_nothing(copied: RunDirectory, watched: RunDirectory) -> None:
    lines = segment(copied, "n05").read_bytes().splitlines()
    record = json.loads(lines[-1])
    for t_ns in (2**62, 10**18):
        record |= {"seq": record["seq"] + 1, "t_ns": t_ns}
        lines.append(json.dumps(record).encode())
    segment(copied, "n05").write_bytes(b"\n".join(lines) + b"\n")
    found, honest = read(copied), read(watched)
    assert max(c.t for c in found) == max(c.t for c in honest)
    assert of(found, "route") == of(honest, "route")


def test_events_of_the_runs_monitor(copied: RunDirectory) -> None:
    append_event(copied, "node", node="n04", status="unreachable", reason="no answer\x1b[2J")
    append_event(copied, "node", node="nobody", status="failed", reason="")
    append_event(copied, "clock", node="n04", offset_ms=12.5, uncertainty_ms=55.0)
    append_event(copied, "clock", node="n04", offset_ms="x", uncertainty_ms=None)
    append_event(copied, "radio", late_ratio=0.2, p99_us=1500.0)
    found = read(copied)
    unreachable = [c for c in of(found, "node", "n04") if c.value["state"] == "unreachable"]
    assert unreachable[0].value["why"] == "no answer\\x1b[2J"
    assert not of(found, "node", "nobody")
    assert [c.value for c in of(found, "clock")] == [{"offset_ms": 12.5, "uncertainty_ms": 55.0}]
    assert [c.value for c in of(found, "radio")] == [{"late_ratio": 0.2, "p99_us": 1500.0}]
    doubts = [c.value["so_far"] for c in of(found, "verdict") if "so_far" in c.value]
    assert doubts[-1] == [
        "the radio was late: 20.0% of deliveries by more than 1 ms",
        "clock of n04 is known to within 55.0 ms only: more than clocks.uncertainty, 20 ms",
    ]


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.just(10**400) | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
kinds = st.sampled_from(["phase", "nodes", "node", "fault", "clock", "radio", "verdict", "error", "x"])
of_phases = ["phase", "state", "outcome", "seconds", "reason", "ok", "failed", "unreachable", "t"]
of_others = [
    "node",
    "status",
    "action",
    "deed",
    "t_ns",
    "offset_ms",
    "uncertainty_ms",
    "late_ratio",
    "p99_us",
]
names = st.sampled_from([*of_phases, *of_others, "verdict", "reasons"])
words = st.sampled_from(["up", "measure", "started", "finished", "n01", "failed", "crash", "ok", "verdict"])
events = st.builds(
    lambda kind, facts: {**facts, "kind": kind}, kinds, st.dictionaries(names, anything | words)
)


@given(st.lists(events, min_size=1, max_size=20))
@settings(max_examples=300)
def test_no_event_breaks_the_view(found: list[dict[str, Any]]) -> None:
    facts = RunFacts(nodes=("n01", "n02"))
    clock = RunClock()
    clock.know(facts)
    clock.zero_ns = 0
    view = RunView(facts, clock, {})
    for event in found:
        t_ns = clock.event_ns(event)
        for change in (*view.take(1.0, Item(EVENT, "", t_ns, event, 1)), *view.tick(1.5)):
            assert len(msgspec.json.encode(change)) < 100_000


def test_a_file_that_is_replaced_is_read_on(tmp_path: Path) -> None:
    """As when a node's mirrored segment gives way to the collected one."""
    best, mirror = tmp_path / "best", tmp_path / "mirror"
    mirror.write_bytes(b"1\n2\n")
    tail = Tail([best, mirror])
    tail.look()
    assert tail.read() == ([b"1", b"2"], True)
    best.write_bytes(b"1\n")  # not complete yet
    tail.look()
    assert tail.read() == ([], True)
    mirror.write_bytes(b"1\n2\n3")
    assert tail.read() == ([], True)
    best.write_bytes(b"1\n2\n3\n4\n")
    mirror.unlink()
    tail.look()
    assert tail.read() == ([b"3", b"4"], True)
    tail.close()


def test_a_file_that_shrinks_gives_nothing_more(tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    file.write_text('{"kind":"a"}\n{"kind":"b"}\n')
    events = Events(0, file)
    events.look()
    events.fill()
    assert len(events.items) == 2
    file.write_text("")
    events.look()
    assert events.fill() == 0
    events.close()


@pytest.mark.parametrize(
    "event",
    [
        {"kind": "phase", "phase": [1]},
        {"kind": "nodes", "phase": {}},
        {"kind": "x", "t_ns": 10**400},
        {"kind": "x", "t_ns": True},
    ],
)
def test_an_event_that_no_run_writes_is_shown_and_harms_nothing(
    copied: RunDirectory, event: dict[str, Any]
) -> None:
    honest = read(copied)
    append_event(copied, event["kind"], **{name: event[name] for name in event if name != "kind"})
    found = read(copied)
    assert [c for c in found if c.channel != "event"] == [c for c in honest if c.channel != "event"]


@pytest.mark.parametrize("huge", [10**320, -(10**320), 2**63, True])
@pytest.mark.parametrize("clock", ["virtual", "real"])
def test_times_beyond_all_bounds_are_left_out(copied: RunDirectory, huge: int, clock: str) -> None:
    manifest = json.loads(copied.manifest.read_text())
    manifest |= {"measure_from_ns": huge, "measure_until_ns": huge, "clock": clock}
    copied.manifest.write_text(json.dumps(manifest))
    assert of(read(copied), "phase")
    assert LiveRun(copied).head["measure"] is None


def test_a_plan_with_a_replica_of_no_operator_is_no_plan(copied: RunDirectory) -> None:
    manifest = json.loads(copied.manifest.read_text())
    replicas = manifest["apps"]["query"]["plan"]["replicas"]
    replicas.append({**replicas[0], "operator": "nobody"})
    copied.manifest.write_text(json.dumps(manifest))
    assert LiveRun(copied).head["apps"] == [{"name": "query", "kind": "query", "view": {}}]
    assert of(read(copied), "phase")


def test_a_view_that_fails_ends_in_one_sentence(
    copied: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise KeyError("x\x1b[2J\n")

    monkeypatch.setattr(RunView, "take", fail)
    with pytest.raises(CannotShow) as caught:
        read(copied)
    assert isinstance(caught.value, RoveError)
    assert str(caught.value).startswith(f"run {copied.id} cannot be shown: ")
    assert "\n" not in str(caught.value)
    assert "\x1b" not in str(caught.value)


def test_rove_top_tells_a_failure_in_one_sentence(copied: RunDirectory) -> None:
    manifest = json.loads(copied.manifest.read_text())
    manifest["measure_from_ns"] = manifest["measure_until_ns"] = 10**320
    copied.manifest.write_text(json.dumps(manifest))
    with copied.events.open("a") as file:
        file.write('{"kind":"phase","phase":[1]}\n')
    ended = rove(copied.path.parent.parent, "top", copied.id, "--once")
    assert ended.returncode == 0, ended.stderr
    assert "Traceback" not in ended.stderr
