"""Files of a run directory that somebody else wrote: what no run of ours holds is passed over."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from node_agent.apps.dataflow.faces.gallery import BadGallery, Gallery
from node_agent.telemetry.segments import read_records
from orchestrator.backends.core.driver_client import CoreDriver, CoreError
from orchestrator.backends.remote.collection import refused_before
from orchestrator.backends.remote.ledger import leases_over, nodes_of
from orchestrator.cli.app import app
from orchestrator.lifecycle.rejudging import after_arrival
from orchestrator.lifecycle.teardown import last_phase
from orchestrator.runs import journal as journals
from orchestrator.runs.events import EventLog, describe
from orchestrator.runs.files import read_json, read_lines, write_json
from orchestrator.runs.journal import Journal
from orchestrator.runs.phases import Ending, Phase
from orchestrator.runs.run_directory import RunDirectory

SOUND = {"t": "2026-03-01T12:00:00.000+00:00", "entry": "intent", "id": 1, "kind": "directory"}
DEEP = b"\x91" * 1_100 + b"\xc0"


@pytest.mark.parametrize(
    "change",
    [
        {"t": 5},
        {"t": "yesterday"},
        {"t": "2026-03-01T12:00:00"},
        {"entry": ["intent"]},
        {"id": [1]},
        {"id": -1},
        {"kind": {}},
        {"entry": "opened"},
        {"entry": "opened", "pid": "1", "started": 2},
        {"entry": "closed", "t": None},
    ],
)
def test_a_journal_entry_that_is_not_ours_is_passed_over(tmp_path: Path, change: dict[str, Any]) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_text("\n".join(json.dumps(entry) for entry in (SOUND, {**SOUND, **change})) + "\n")
    assert journals.read(path) == [SOUND]
    assert journals.owner(journals.read(path)) is None
    assert not leases_over(tmp_path)
    taken = Journal.take_over(path, 1.0)
    assert taken is not None and taken.intend("x") == 2
    taken.abandon()


def test_a_node_of_a_foreign_journal_needs_all_that_we_write_of_it(tmp_path: Path) -> None:
    node = {
        **SOUND,
        "kind": "remote node",
        "node": "a",
        "place": "/p",
        "supervisor": ["python3"],
        "lease": 60.0,
    }
    entries = [node, {**node, "id": 2, "lease": "long"}, {k: v for k, v in node.items() if k != "place"}]
    (tmp_path / "journal.jsonl").write_text("\n".join(map(json.dumps, entries)) + "\n")
    assert [each.node for each in nodes_of(tmp_path)] == ["a"]


def test_what_is_no_file_is_neither_waited_for_nor_written_through(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("mine\n")
    run = RunDirectory(tmp_path / "run")
    run.path.mkdir()
    os.mkfifo(run.journal)
    assert not journals.is_locked(run.journal) and journals.read(run.journal) == []
    with pytest.raises(OSError):
        Journal.take_over(run.journal, 0.1)
    run.journal.unlink()
    for link in (run.journal, run.events):
        link.symlink_to(outside)
    with pytest.raises(OSError):
        Journal.take_over(run.journal, 0.1)
    with pytest.raises(OSError):
        EventLog(run.events).add("verdict")
    assert outside.read_text() == "mine\n" and last_phase(run) is None


def test_numbers_that_json_does_not_have_leave_a_readable_file(tmp_path: Path) -> None:
    odd = {"a": [1.5, float("inf")], "b": {"c": float("nan")}, "d": (-float("inf"),)}
    write_json(tmp_path / "manifest.json", odd)
    assert read_json(tmp_path / "manifest.json") == {"a": [1.5, None], "b": {"c": None}, "d": [None]}
    EventLog(tmp_path / "events.jsonl").add("odd", value=float("inf"))
    [event] = read_lines(tmp_path / "events.jsonl")
    assert event["value"] is None


def test_the_verbs_show_a_run_whose_events_are_a_pipe_and_whose_verdict_is_a_list(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = RunDirectory(tmp_path / "experiment" / "r1")
    run.path.mkdir(parents=True)
    run.verdict.write_text('{"verdict": [["valid"]]}')
    os.mkfifo(run.events)
    for verb in (["status"], ["status", "r1"]):
        app([*verb, "--runs-dir", str(tmp_path)], standalone_mode=False)
    assert "r1" in capsys.readouterr().out


@pytest.mark.parametrize(
    "event",
    [
        {"kind": "phase", "phase": "up", "outcome": "ok", "seconds": "1", "reason": ""},
        {"kind": "nodes", "phase": "up", "ok": 1, "failed": "x", "unreachable": []},
        {"kind": "verdict", "verdict": [], "reasons": [1, {}]},
        {"kind": "verdict", "verdict": "valid", "reasons": 5},
        {"kind": ["phase"], "phase": {}, "state": "started"},
        {},
    ],
)
def test_an_odd_event_is_told_somehow(event: dict[str, Any]) -> None:
    assert isinstance(describe(event), str)


@pytest.mark.parametrize("name", ["../x", "/etc", "a/b", "", ".", "x\0y", 7, {}, ["run.01"], None])
def test_a_sweep_has_no_members_elsewhere(tmp_path: Path, name: Any) -> None:
    sweep = RunDirectory(tmp_path / "experiment" / "run")
    for directory in (sweep.path, sweep.path.with_name("run.01"), sweep.path / "b", tmp_path / "x"):
        directory.mkdir(parents=True)
    sweep.sweep.write_text(json.dumps({"members": [name, "run.01"]}))
    assert [member.id for member in sweep.members()] == ["run.01"]


@pytest.mark.parametrize("members", [5, "run.01", {"run.01": 1}, None])
def test_members_that_are_no_list_are_none(tmp_path: Path, members: Any) -> None:
    sweep = RunDirectory(tmp_path)
    sweep.sweep.write_text(json.dumps({"members": members}))
    assert sweep.members() == []


def test_events_that_are_not_ours_are_passed_over(tmp_path: Path) -> None:
    ended = {
        "kind": "phase",
        "state": "finished",
        "phase": "up",
        "outcome": "ok",
        "seconds": 1.0,
        "reason": "",
    }
    odd: list[dict[str, Any]] = [
        {**ended, "phase": "nonsense"},
        {**ended, "seconds": []},
        {"kind": "phase", "state": "finished"},
    ]
    nodes = {"kind": "nodes", "phase": "up", "ok": 5, "failed": [], "unreachable": {}}
    [result] = after_arrival([*odd, nodes, ended, {"kind": "nodes"}], (), (), 1.0)
    assert (result.phase, result.ending) == (Phase.UP, Ending.OK)
    run = RunDirectory(tmp_path)
    run.events.write_text(
        "\n".join(map(json.dumps, [ended, {"kind": "phase"}, {"kind": "phase", "phase": 5}]))
    )
    assert last_phase(run) == "up"


def test_refusals_that_are_not_ours_are_passed_over(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    ours = {"what": "file", "source": "n1", "reason": "size", "count": 2}
    told: list[Any] = [5, [{}], [ours], None]
    run.events.write_text("\n".join(json.dumps({"kind": "refused", "refused": each}) for each in told))
    assert [each.count for each in refused_before(run)] == [2]
    run.events.unlink()
    os.mkfifo(run.events)
    assert refused_before(run) == []


def test_a_record_with_a_field_that_nobody_knows_and_nothing_can_hold_is_passed_over(tmp_path: Path) -> None:
    record = b'{"run":"r","node":"n","boot":1,"seq":%d,"t_ns":1,"kind":"agent_stop","reason":"x"%b}\n'
    segment = (
        record % (0, b"")
        + record % (1, b',"odd":1e999')
        + record % (2, b',"odd":' + b"[" * 500 + b"]" * 500 + b"")
    )
    (tmp_path / "b0001-s000001.jsonl").write_bytes(segment + record % (3, b""))
    assert [found["seq"] for found in read_records(tmp_path)] == [0, 3]


@pytest.mark.parametrize(
    "data", [DEEP, b"\x81\xa6format" + DEEP, b"\x83\xa6format\xacrove-gallery\xa7edition\x01\xa1x" + DEEP]
)
def test_a_gallery_nested_too_deeply_is_bad(data: bytes) -> None:
    with pytest.raises(BadGallery):
        Gallery.decode(data)


class Driving:
    """A driver's process that says one line, and nothing more."""

    def __init__(self, line: bytes) -> None:
        self.reader = asyncio.StreamReader(limit=1 << 20)
        self.reader.feed_data(line)
        self.reader.feed_eof()
        self.writer = self

    def write(self, data: bytes) -> None: ...

    async def drain(self) -> None: ...

    async def close(self) -> None: ...

    async def wait(self) -> int:
        return 1


@pytest.mark.parametrize(
    "line",
    [b'{"id":' + b"[" * 1_100 + b"]" * 1_100 + b"}", b'{"id":1,"error":"\xe5"}', msgspec.json.encode([1])],
)
def test_what_cores_driver_says_is_never_more_than_an_error(tmp_path: Path, line: bytes) -> None:
    async def ask() -> None:
        process: Any = Driving(line + b"\n")
        await CoreDriver(process, "python3", tmp_path / "log").status()

    with pytest.raises(CoreError):
        asyncio.run(ask())
