"""Pieces of a node's record for its owner: from its own directory only, bounded, in order."""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from node_agent.agent.control import AskMetrics, Report, Start
from node_agent.supervisor.commands import MOST_PICTURE, MOST_TAIL, ReadPicture, ReadSegment, StartAgent
from node_agent.supervisor.reading import Piece, read_picture, read_segment
from node_agent.telemetry.segment_files import SegmentName
from orchestrator.backends.agent_channel import AgentChannel, AgentLost
from tests.unit.supervising import PATIENCE_S, attached, new_place, supervise


@pytest.fixture
def record(tmp_path: Path) -> Path:
    (tmp_path / "segments").mkdir()
    (tmp_path / "frames" / "screen-0").mkdir(parents=True)
    return tmp_path


def write(record: Path, boot: int, index: int, data: bytes) -> None:
    (record / "segments" / str(SegmentName(boot, index))).write_bytes(data)


def test_segments_are_read_one_after_the_other(record: Path) -> None:
    write(record, 1, 1, b"ab\n")
    write(record, 1, 2, b"c\n")
    write(record, 2, 1, b"d\n")
    cursor, read = (0, 0, 0), b""
    while (piece := read_segment(record, SegmentName(*cursor[:2]), cursor[2])).data:
        read += piece.data
        boot, index, offset = piece.at
        cursor = boot, index, offset + len(piece.data)
    assert (read, cursor) == (b"ab\nc\nd\n", (2, 1, 2))
    write(record, 2, 1, b"d\nmore\n")
    assert read_segment(record, SegmentName(2, 1), 2) == Piece((2, 1, 2), b"more\n")


def test_a_piece_is_bounded(record: Path) -> None:
    write(record, 1, 1, bytes(MOST_TAIL + 5))
    assert len(read_segment(record, SegmentName(1, 1), 0).data) == MOST_TAIL
    assert len(read_segment(record, SegmentName(1, 1), MOST_TAIL).data) == 5
    assert read_segment(record, SegmentName(1, 1), 2**40).data == b""


def test_nothing_is_there_yet(tmp_path: Path) -> None:
    assert read_segment(tmp_path, SegmentName(0, 0), 0) == Piece((0, 0, 0), b"")
    assert read_picture(tmp_path, "screen-0", 0) == Piece((0,), b"")


def test_a_picture_is_sent_once(record: Path) -> None:
    picture = record / "frames" / "screen-0" / "latest.jpg"
    picture.write_bytes(b"first")
    (stamp,), data = read_picture(record, "screen-0", 0)
    assert data == b"first"
    assert read_picture(record, "screen-0", stamp) == Piece((stamp,), b"")
    os.utime(picture, ns=(stamp + 1, stamp + 1))
    assert read_picture(record, "screen-0", stamp).data == b"first"


def test_a_picture_that_is_too_large_is_not_sent(record: Path) -> None:
    (record / "frames" / "screen-0" / "latest.jpg").write_bytes(bytes(MOST_PICTURE + 1))
    with pytest.raises(OSError, match="more than"):
        read_picture(record, "screen-0", 0)


def test_no_link_is_followed(record: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    secret = tmp_path_factory.mktemp("elsewhere") / "latest.jpg"
    secret.write_bytes(b"secret")
    (record / "frames" / "screen-0" / "latest.jpg").symlink_to(secret)
    (record / "frames" / "other-0").symlink_to(secret.parent)
    (record / "segments" / str(SegmentName(1, 1))).symlink_to(secret)
    for folder in ("screen-0", "other-0"):
        with pytest.raises(OSError):
            read_picture(record, folder, 0)
    with pytest.raises(OSError):
        read_segment(record, SegmentName(1, 1), 0)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    place = new_place(tmp_path)
    assert supervise("start", place)[0] == 0
    yield place
    assert supervise("end", place)[0] == 0


async def read_something(channel: AgentChannel) -> Report:
    while True:
        report = await channel.ask(ReadSegment(0, 0, 0), PATIENCE_S)
        if report.data:
            return report
        await asyncio.sleep(0.02)


def test_an_owner_reads_what_the_agent_has_recorded(place: Path) -> None:
    async def scenario() -> tuple[Report, Report]:
        async with attached(place) as channel:
            await channel.ask(StartAgent(), PATIENCE_S)
            await channel.ask(Start(), PATIENCE_S)
            report = await read_something(channel)
            for folder in ("../segments", "", "a/b", "."):
                with pytest.raises(AgentLost, match="no answer"):
                    await channel.ask(ReadPicture(folder), 0.3)
            return report, await channel.ask(AskMetrics(), PATIENCE_S)

    read, asked = asyncio.run(scenario())
    assert read.at == (1, 1, 0)
    file = place / "record" / "segments" / str(SegmentName(1, 1))
    assert file.read_bytes().startswith(read.data)
    assert asked.samples == (), "this agent is not to be watched"
