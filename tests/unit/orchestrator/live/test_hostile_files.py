"""Files of a run that are endless, too many, or links: each costs a bounded part of a poll."""

import json
import os
from pathlib import Path

import pytest

from node_agent.apps.dataflow.faces.params import folder_of
from orchestrator.live.follow import MOST_BYTES
from orchestrator.live.run import LiveRun
from orchestrator.live.server.pictures import kept_numbers, picture
from orchestrator.live.sources import REFUSED, Records, SegmentsTail
from orchestrator.live.tail import MOST_KEPT_OPEN, MOST_SKIPPED, PIECE, Allowance, Tail
from orchestrator.runs.run_directory import RunDirectory
from tests.unit.orchestrator.live.reading import of, read

pytestmark = pytest.mark.timeout(60)

SPARSE = 200 << 30


def records_of(run: RunDirectory, node: str) -> Records:
    found = Records(5, node, SegmentsTail([run.segments(node)], run.path, Allowance()), None)
    found.look()
    return found


def open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def test_a_sparse_file_costs_what_is_read_of_it_and_is_given_up(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    run.segments("a").mkdir(parents=True)
    file = run.segments("a") / "b0001-s000001.jsonl"
    file.touch()
    os.truncate(file, SPARSE)
    records = records_of(run, "a")
    spent = steps = 0
    while not records.at_end:
        cost = records.fill()
        assert 0 < cost <= PIECE or records.at_end
        spent += cost
        steps += 1
        assert steps < 1000
    assert MOST_SKIPPED <= spent < 2 * MOST_SKIPPED
    assert [record for _, record, _, _ in records.items] == [{("corrupt", "size"): 1}]
    records.close()


def test_a_sparse_file_of_one_node_hides_no_other(copied: RunDirectory) -> None:
    honest = read(copied)
    file = copied.segments("n08") / "b0001-s000002.jsonl"
    file.touch()
    os.truncate(file, SPARSE)
    found = read(copied)
    assert of(found, "rate") == of(honest, "rate")
    assert of(found, "record", "n08")[-1].value["refused"] == 1
    assert read(copied, [100_000]) == found


def test_a_line_of_several_pieces_is_read_once_it_is_whole(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"1\n" + b"x" * 200_000)
    tail = Tail([file])
    tail.look()
    lines, at_end = tail.read(1000)
    while not at_end:
        more, at_end = tail.read(1000)
        lines += more
    assert lines == [b"1"]
    before = tail.cost
    assert tail.read(1000) == ([], True)
    assert tail.cost == before  # what was searched is not read again
    with file.open("ab") as out:
        out.write(b"y\n2\n")
    assert tail.read(1000) == ([b"x" * 200_000 + b"y", b"2"], True)
    tail.close()


def test_lines_that_are_too_long_do_not_depend_on_pieces(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"1\n" + b"x" * 50 + b"\n2\n" + b"y" * 11 + b"\n" + b"z" * 10 + b"\n3\n")
    for most in (1, 3, 7, 20, 1000):
        tail = Tail([file], longest=10)
        tail.look()
        lines: list[bytes] = []
        for _ in range(1000):
            lines += tail.read(most)[0]
        assert lines == [b"1", b"2", b"z" * 10, b"3"]
        assert (tail.too_long, tail.skipped) == (2, 51 + 12)
        tail.close()


def test_many_lines_without_anything_are_one_item(copied: RunDirectory) -> None:
    segment = copied.segments("n08") / "b0001-s000001.jsonl"
    segment.write_bytes(b"\n" * 300_000 + b"{}\nx\n" * 1000 + segment.read_bytes())
    records = records_of(copied, "n08")
    spent = 0
    while not records.has_begun:
        spent += records.fill()
        assert len(records.items) <= 1 or records.has_begun
    assert spent > MOST_BYTES  # so that a poll does not read all of it
    kinds = [kind for _, _, _, kind in records.items]
    assert kinds.count(REFUSED) == 1
    records.close()
    found = read(copied)
    assert of(found, "record", "n08")[-1].value["refused"] == 302_000
    doubts = [c.value["so_far"] for c in of(found, "verdict") if "so_far" in c.value]
    assert doubts[-1] == ["telemetry incomplete: 302000 × lines corrupt (n08)"]


def test_a_poll_is_bounded_for_all_nodes_together(copied: RunDirectory) -> None:
    for number in range(1, 9):
        segment = copied.segments(f"n{number:02}") / "b0001-s000001.jsonl"
        segment.write_bytes(b"\n" * 200_000 + segment.read_bytes())
    live = LiveRun(copied)
    live.poll()
    offsets = [s._segments._tail.offset for s in live._follower._sources if isinstance(s, Records)]
    assert sum(offsets) <= MOST_BYTES // 64 + PIECE
    live.close()


def test_a_thousand_nodes_keep_few_files_open(copied: RunDirectory) -> None:
    names = [f"z{number:04}" for number in range(300)]
    for name in names:
        copied.segments(name).mkdir(parents=True)
        os.link(copied.segments("n08") / "b0001-s000001.jsonl", copied.segments(name) / "b0001-s000001.jsonl")
    nodes = [f"n{number:02}" for number in range(1, 9)] + names
    copied.spec.write_text(json.dumps({"topology": {"nodes": nodes}}))
    before = open_files()
    live = LiveRun(copied)
    found = []
    while not live.ended:
        found += live.poll()
        assert open_files() <= before + MOST_KEPT_OPEN
    assert of(found, "record", "n01")
    assert of(found, "record", names[-1])
    live.close()
    assert open_files() == before


def test_a_file_that_is_not_kept_open_is_read_on(tmp_path: Path) -> None:
    best, mirror = tmp_path / "best", tmp_path / "mirror"
    mirror.write_bytes(b"1\n2\n")
    tail = Tail([best, mirror], allowance=Allowance(0))
    before = open_files()
    tail.look()
    assert tail.read() == ([b"1", b"2"], True)
    assert open_files() == before
    best.write_bytes(b"1\n2\n3\n")
    mirror.unlink()
    assert tail.read() == ([], True)
    tail.look()
    assert tail.read() == ([b"3"], True)
    tail.close()


@pytest.mark.parametrize("part", ["nodes", "nodes/n06", "nodes/n06/segments", "radio"])
def test_no_folder_that_is_a_link_is_followed(copied: RunDirectory, tmp_path: Path, part: str) -> None:
    outside = tmp_path / "outside"
    (copied.path / part).rename(outside)
    (copied.path / part).symlink_to(outside)
    found = read(copied)
    assert of(found, "phase")
    if part == "radio":
        assert not of(found, "position")
    else:
        assert not of(found, "record", "n06")
    assert bool(of(found, "record", "n01")) == (part != "nodes")


@pytest.mark.parametrize("part", ["tmp", "tmp/live", "tmp/live/n06"])
def test_no_link_in_the_mirror_is_followed(copied: RunDirectory, tmp_path: Path, part: str) -> None:
    outside = tmp_path / "outside"
    mirror = outside / Path("tmp/live/n06").relative_to(part)
    mirror.mkdir(parents=True, exist_ok=True)
    copied.segments("n06").rename(mirror / "segments")
    (copied.path / part).parent.mkdir(exist_ok=True, parents=True)
    if (copied.path / part).exists():
        (copied.path / part).rmdir()
    (copied.path / part).symlink_to(outside)
    assert not of(read(copied), "record", "n06")


def test_a_run_itself_may_be_named_by_a_link(copied: RunDirectory, tmp_path: Path) -> None:
    link = tmp_path / "latest"
    link.symlink_to(copied.path)
    assert of(read(RunDirectory(link)), "record", "n06")


@pytest.mark.parametrize("part", ["nodes", "nodes/n06", "nodes/n06/frames", "the folder"])
def test_no_picture_behind_a_link_is_shown(copied: RunDirectory, tmp_path: Path, part: str) -> None:
    folder = copied.nodes / "n06" / "frames" / folder_of("query", "screen/0")
    folder.mkdir(parents=True)
    (folder / "00000007.jpg").write_bytes(b"\xff\xd8\xffpicture\xff\xd9")
    assert picture(copied, "query", "screen/0", 7) is not None
    place = copied.path / part if (copied.path / part).exists() else folder
    place.rename(tmp_path / "outside")
    place.symlink_to(tmp_path / "outside")
    assert picture(copied, "query", "screen/0", 7) is None
    assert kept_numbers(copied, "query", "screen/0") == []
