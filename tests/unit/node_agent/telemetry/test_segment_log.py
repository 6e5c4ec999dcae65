"""The segment log: gap-free records on disk, whatever rotation, restarts and full disks do."""

import json
import os
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from node_agent.apps.dataflow.events import QueueSample
from node_agent.apps.records import record_format
from node_agent.model.telemetry import AgentStop, Envelope
from node_agent.telemetry.segment_files import segment_names
from node_agent.telemetry.segment_log import LogError, SegmentLog
from node_agent.telemetry.segments import inspect, read_records


def log_in(directory: Path, **options: int) -> SegmentLog:
    return SegmentLog(directory, "run-1", "n1", count(1000).__next__, **options)


def sample(length: int) -> QueueSample:
    return QueueSample("detect/0", "input", length)


def test_a_line_is_the_envelope_then_the_event(tmp_path: Path) -> None:
    log = log_in(tmp_path)
    log.append(AgentStop("done"))
    log.recorder("query")(sample(3))
    log.close()
    own, line = (tmp_path / "b0001-s000001.jsonl").read_text().splitlines()
    assert own == (
        '{"run":"run-1","node":"n1","boot":1,"app":"","seq":0,"t_ns":1000,"kind":"agent_stop","reason":"done"}'
    )
    assert line == (
        '{"run":"run-1","node":"n1","boot":1,"app":"query","seq":1,"t_ns":1001,'
        '"kind":"queue","replica":"detect/0","queue":"input","length":3}'
    )
    assert list(json.loads(line))[:7] == list(Envelope.__struct_fields__)


def test_no_event_hides_a_field_of_the_envelope() -> None:
    for kind in record_format().events:
        assert not set(kind.__struct_fields__) & set(Envelope.__struct_fields__)


def test_rotation_by_size_loses_nothing(tmp_path: Path) -> None:
    log = log_in(tmp_path, max_bytes=500)
    for i in range(50):
        log.append(sample(i))
    log.append(AgentStop("done"))
    log.close()
    assert len(segment_names(tmp_path)) > 5
    assert [r["seq"] for r in read_records(tmp_path)] == list(range(51))
    assert inspect(tmp_path).complete


def test_each_boot_gets_its_own_number(tmp_path: Path) -> None:
    for boot in (1, 2, 3):
        log = log_in(tmp_path)
        assert log.boot == boot
        log.append(AgentStop("done"))
        log.close()
    assert [(r["boot"], r["seq"]) for r in read_records(tmp_path)] == [(1, 0), (2, 0), (3, 0)]
    assert inspect(tmp_path).boots == 3


@pytest.mark.parametrize("bound", [{"buffer_records": 4}, {"buffer_bytes": 400}])
def test_only_a_bounded_tail_is_unwritten(tmp_path: Path, bound: dict[str, int]) -> None:
    log = log_in(tmp_path, **bound)
    for i in range(100):
        log.append(sample(i))
    assert inspect(tmp_path).records >= 96
    log.flush()
    assert inspect(tmp_path).records == 100
    log.close()


def test_close_may_be_repeated_and_then_nothing_is_taken(tmp_path: Path) -> None:
    log = log_in(tmp_path)
    log.close()
    log.close()
    log.flush()
    assert log.closed
    with pytest.raises(LogError, match="closed"):
        log.append(sample(1))


def test_a_full_disk_is_a_typed_error_and_tears_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = 1000
    real_write = os.write

    def write(fd: int, data: Any) -> int:
        nonlocal room
        if room == 0:
            raise OSError(28, "No space left on device")
        written = real_write(fd, bytes(data)[:room])
        room -= written
        return written

    monkeypatch.setattr(os, "write", write)
    log = log_in(tmp_path, buffer_records=3)
    taken = 0
    with pytest.raises(LogError, match="No space left"):
        for i in range(100):
            log.append(sample(i))
            taken += 1
    on_disk = inspect(tmp_path)
    assert 0 < on_disk.records < taken
    assert on_disk.corrupt == 0

    room = 100_000
    log.append(AgentStop("done"))
    log.close()
    assert [r["seq"] for r in read_records(tmp_path)] == list(range(taken + 1))
    assert inspect(tmp_path).complete


def test_a_directory_that_cannot_be_used_is_a_typed_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LogError, match="cannot start"):
        log_in(tmp_path / "file" / "segments")
