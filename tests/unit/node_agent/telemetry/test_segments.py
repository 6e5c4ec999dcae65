"""Reading telemetry back: whatever happens to the files, the counts say exactly what is missing."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from node_agent.apps.dataflow.events import QueueSample
from node_agent.model.telemetry import AgentStop
from node_agent.telemetry import segments
from node_agent.telemetry.segment_files import segment_names
from node_agent.telemetry.segment_log import SegmentLog
from node_agent.telemetry.segments import Completeness, inspect, read_records

RECORDS = 12


def write_boot(directory: Path, records: int = RECORDS, max_bytes: int = 350) -> None:
    log = SegmentLog(directory, "run", "n1", lambda: 5, max_bytes=max_bytes)
    for i in range(records - 1):
        log.append(QueueSample("op/0", "input", i))
    log.append(AgentStop("done"))
    log.close()


def lines_of(directory: Path) -> list[bytes]:
    files = [(directory / str(name)) for name in segment_names(directory)]
    return [line for file in files for line in file.read_bytes().splitlines(keepends=True)]


def test_an_untouched_log_is_complete(tmp_path: Path) -> None:
    write_boot(tmp_path)
    write_boot(tmp_path)
    assert inspect(tmp_path) == Completeness(2 * RECORDS, 2, 0, 0, 0, 0, 0)
    assert inspect(tmp_path).complete


def test_numbers_that_only_have_gaps_are_counted_in_bounded_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segments, "MOST_GAPS", 10)
    line = '{"run":"run","node":"n1","boot":1,"seq":%d,"t_ns":5,"kind":"queue","replica":"op/0",'
    line += '"queue":"input","length":0}\n'
    (tmp_path / "b0001-s000001.jsonl").write_text("".join(line % (2 * i) for i in range(100)))
    found = inspect(tmp_path)
    assert (found.records, found.corrupt, found.reasons) == (10, 90, {"order": 90})
    assert found.missing == 9
    # A node that writes on in order is still read.
    with (tmp_path / "b0001-s000001.jsonl").open("a") as log:
        log.write("".join(line % i for i in range(19, 29)))
    assert inspect(tmp_path).records == 20


def test_more_boots_than_were_started_are_a_flaw(tmp_path: Path) -> None:
    write_boot(tmp_path)
    write_boot(tmp_path)
    assert inspect(tmp_path, starts=2).complete
    assert (inspect(tmp_path, starts=1).surplus_boots, inspect(tmp_path, starts=1).complete) == (1, False)


def test_no_log_at_all_is_not_complete(tmp_path: Path) -> None:
    assert not inspect(tmp_path).complete
    assert inspect(tmp_path / "absent") == Completeness(0, 0, 0, 0, 0, 0, 0)


@given(st.lists(st.integers(0, 2), min_size=RECORDS, max_size=RECORDS), st.randoms(use_true_random=False))
def test_lines_deleted_duplicated_and_shuffled(copies: list[int], random: object) -> None:
    with TemporaryDirectory() as name:
        directory = Path(name)
        write_boot(directory, max_bytes=10_000)
        [segment] = directory.iterdir()
        lines = [line for line, n in zip(lines_of(directory), copies, strict=True) for _ in range(n)]
        random.shuffle(lines)  # type: ignore[attr-defined]
        segment.write_bytes(b"".join(lines))

        found = inspect(directory)
        kept = [seq for seq, n in enumerate(copies) if n]
        assert found.records == len(kept)
        assert found.duplicates == sum(n - 1 for n in copies if n)
        assert found.missing == (max(kept) + 1 - len(kept) if kept else 0)
        assert found.unclosed_boots == (copies[-1] == 0)
        assert found.torn == found.corrupt == 0
        assert found.complete == (copies == [1] * RECORDS)


@given(st.integers(0, 100), st.integers(0, 2000))
def test_a_segment_cut_at_any_byte(which: int, at: int) -> None:
    with TemporaryDirectory() as name:
        directory = Path(name)
        write_boot(directory)
        files = [directory / str(segment) for segment in segment_names(directory)]
        damaged = files[which % len(files)]
        content = damaged.read_bytes()
        cut = content[: at % (len(content) + 1)]
        damaged.write_bytes(cut)

        found = inspect(directory)
        is_last = damaged == files[-1]
        # A line that lost only its newline is whole.
        seen = cut + b"\n" if content.startswith(cut + b"\n") and cut else cut
        whole = seen.count(b"\n")
        fragment = int(seen != b"" and not seen.endswith(b"\n"))
        lost = content.count(b"\n") - whole
        assert found.records == RECORDS - lost
        assert (found.torn, found.corrupt) == ((fragment, 0) if is_last else (0, fragment))
        assert found.missing == (0 if is_last else lost)
        assert found.unclosed_boots == int(is_last and lost > 0)
        assert found.complete == (lost == 0 and fragment == 0)


@given(st.integers(0, RECORDS - 1), st.binary(max_size=60).filter(lambda b: b"\n" not in b))
def test_garbage_in_place_of_a_line(which: int, garbage: bytes) -> None:
    with TemporaryDirectory() as name:
        directory = Path(name)
        write_boot(directory, max_bytes=10_000)
        [segment] = directory.iterdir()
        lines = lines_of(directory)
        lines[which] = garbage + b"\n"
        segment.write_bytes(b"".join(lines))
        found = inspect(directory)
        assert (found.records, found.corrupt, found.torn) == (RECORDS - 1, 1, 0)
        assert not found.complete
        assert len(list(read_records(directory))) == RECORDS - 1


def test_a_missing_segment_shows_as_missing_records(tmp_path: Path) -> None:
    write_boot(tmp_path)
    first, *_ = segment_names(tmp_path)
    gone = (tmp_path / str(first)).read_bytes().count(b"\n")
    (tmp_path / str(first)).unlink()
    assert inspect(tmp_path).missing == gone


def test_a_boot_that_vanished_altogether_is_noticed(tmp_path: Path) -> None:
    for _ in range(3):
        write_boot(tmp_path, max_bytes=10_000)
    (tmp_path / "b0002-s000001.jsonl").unlink()
    found = inspect(tmp_path)
    assert (found.boots, found.unclosed_boots, found.missing) == (3, 1, 0)
    assert not found.complete


def test_a_record_of_another_boot_does_not_count(tmp_path: Path) -> None:
    write_boot(tmp_path, max_bytes=10_000)
    write_boot(tmp_path, max_bytes=10_000)
    second = tmp_path / "b0002-s000001.jsonl"
    second.write_bytes(second.read_bytes().replace(b'"boot":2', b'"boot":1'))
    assert inspect(tmp_path).corrupt == RECORDS


def test_other_files_are_left_alone(tmp_path: Path) -> None:
    write_boot(tmp_path)
    for name in ("notes.txt", "b0000-s000001.jsonl", "b0009-s1.jsonl", "b0001-s000009.jsonl.tmp"):
        (tmp_path / name).write_text("not telemetry\n")
    assert inspect(tmp_path).complete
