import asyncio
import json
import zlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from orchestrator.live.server import feed as feeding
from orchestrator.live.server.answers import Refusal
from orchestrator.live.server.blocks import GZIP_HEAD, Block, block, joined, messages
from orchestrator.live.server.feed import Feed
from orchestrator.live.server.feeds import MOST_OPEN, Feeds
from orchestrator.live.thinning import Thinner
from orchestrator.runs.run_directory import RunDirectory
from orchestrator.runs.timeline import Change

pytestmark = pytest.mark.unit


class Scripted:
    """A source that has given lists of changes to give, one a poll."""

    def __init__(self, slices: Sequence[list[Change]], ends: bool = True) -> None:
        self._slices = list(slices)
        self._ends = ends
        self.ended = False
        self.now = 0.0
        self.closed = False
        self.head: dict[str, Any] = {"apps": [{"name": "query"}]}

    @property
    def caught_up(self) -> bool:
        return not self._slices

    def poll(self) -> list[Change]:
        found = self._slices.pop(0) if self._slices else []
        self.now = max([self.now, *(change.t for change in found)])
        self.ended = self._ends and not self._slices
        return found

    def add(self, changes: list[Change]) -> None:
        self._slices.append(changes)

    def close(self) -> None:
        self.closed = True


def moved(count: int, begin: float = 0.0) -> list[Change]:
    return [Change(begin + n / 10, "", "position", f"n{n % 5:02d}", [n, 2 * n]) for n in range(count)]


def changes_in(raw: bytes) -> list[Any]:
    data = raw.partition(b"data: ")[2]
    return list(json.loads(data)["changes"])


def as_lists(changes: Sequence[Change]) -> list[Any]:
    found: list[Any] = json.loads(json.dumps(changes))
    return found


def test_blocks_of_many_browsers_make_one_gzip_stream() -> None:
    blocks = [
        block(0, next(messages(moved(10), 10**6)), 10, 1.0),
        block(10, [b'[1,"","a","",null]'], 11, 2.0),
    ]
    stream = GZIP_HEAD + b"".join(each.packed() for each in blocks)
    read = zlib.decompressobj(31).decompress(stream)
    assert read == b"".join(each.raw() for each in blocks)


def test_messages_are_bounded() -> None:
    parts = list(messages(moved(1000), 4096))
    assert max(sum(map(len, part)) for part in parts) <= 4096
    assert [json.loads(each) for part in parts for each in part] == as_lists(moved(1000))
    assert [len(part) for part in messages(moved(3), 1)] == [1, 1, 1]


def test_joined_blocks_can_be_cut_where_messages_ended() -> None:
    blocks: list[Block] = []
    for number in range(4):
        encoded = next(messages(moved(3, number), 10**6))
        blocks.append(block(3 * number, encoded, 3 * number + 3, 0.0))
    whole = joined([blocks[0], block(3, [], 3, 0.0), *blocks[1:]], 12, 5.0)
    for sealed in (False, True):
        if sealed:
            whole.seal()
        assert changes_in(whole.raw()) == as_lists([change for n in range(4) for change in moved(3, n)])
        for number in range(4):
            rest = as_lists([change for n in range(number, 4) for change in moved(3, n)])
            assert changes_in(whole.rest_after(3 * number)) == rest


def read_whole(feed: Feed, count: int = 0) -> list[Any]:
    found = []
    for begin, each in feed.after(count):
        found += changes_in(each.rest_after(begin) if begin > each.first else each.raw())
    return found


def test_a_feed_gives_everything_once_from_any_cursor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeding, "MESSAGE_BYTES", 2000)
    monkeypatch.setattr(feeding, "PERIOD_S", 0.001)
    slices = [moved(17, begin) for begin in range(40)]
    everything = as_lists([change for each in slices for change in each])

    async def use() -> None:
        with ThreadPoolExecutor(1) as threads:
            feed = Feed(Scripted(slices), threads)
            await feed.run()
            assert feed.ended
            assert feed.count == len(everything)
            assert read_whole(feed) == everything
            for messages_had in range(1, 40, 7):
                assert read_whole(feed, 17 * messages_had) == everything[17 * messages_had :]
            cursor = json.loads(feed.beat(34).raw().partition(b"data: ")[2])["cursor"]
            assert feed.count_of(cursor) == 34
            assert cursor < 2**53  # JavaScript counts no further
            assert feed.count_of(cursor + 2**33) is None
            assert feed.count_of(feed.count + 1) is None

    asyncio.run(use())


def test_a_very_long_run_is_thinned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeding, "MESSAGE_BYTES", 2000)
    monkeypatch.setattr(feeding, "PERIOD_S", 0.001)
    monkeypatch.setattr(feeding, "MOST_BYTES", 1000)
    slices = [moved(100, 10.0 * number) for number in range(30)]

    async def use() -> None:
        with ThreadPoolExecutor(1) as threads:
            feed = Feed(Scripted(slices), threads)
            await feed.run()
            assert feed.count < 2000
            last = {change.key: change.value for each in slices for change in each}
            assert {each[3]: each[4] for each in read_whole(feed)} == last

    asyncio.run(use())


def test_thinning_keeps_ends_and_last_values() -> None:
    changes = [
        Change(0.0, "", "link", "a>b", {"etx": 1}),
        Change(0.1, "", "link", "a>b", {"etx": 2}),
        Change(0.2, "", "link", "a>b", None),
        Change(0.3, "", "link", "a>b", {"etx": 3}),
        Change(0.4, "", "link", "a>b", {"etx": 4}),
        Change(0.5, "q", "route", "x", 1),
        Change(0.6, "q", "route", "x", 2),
    ]
    thinner = Thinner(1.0)
    kept = [*thinner.thin(changes), *thinner.rest()]
    assert [change.value for change in kept] == [{"etx": 1}, None, {"etx": 3}, 1, 2, {"etx": 4}]


def test_a_run_that_cannot_be_read_ends_its_streams_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    class Broken(Scripted):
        def poll(self) -> list[Change]:
            raise ValueError("the file is odd")

    async def use() -> None:
        feeds = Feeds(lambda run: Broken([]) if run.id == "bad" else Scripted([moved(5)]))
        async with feeds.watch(RunDirectory(tmp_path / "bad")) as bad:
            await bad.news(10)
            assert bad.failure
        with pytest.raises(Refusal, match="cannot be read any further"):
            async with feeds.watch(RunDirectory(tmp_path / "bad")):
                pass
        async with feeds.watch(RunDirectory(tmp_path / "good")) as good:
            while not good.ended:
                await good.news(1)
            assert good.count == 5
        await feeds.close()

    asyncio.run(use())
    assert "the file is odd" in capsys.readouterr().err


def test_feeds_are_shared_bounded_and_closed(tmp_path: Path) -> None:
    made: list[Scripted] = []

    def open_source(run: RunDirectory) -> Scripted:
        made.append(Scripted([moved(5)]))
        return made[-1]

    async def use() -> None:
        feeds = Feeds(open_source)
        runs = [RunDirectory(tmp_path / f"r{number}") for number in range(MOST_OPEN + 1)]
        async with feeds.watch(runs[0]) as one, feeds.watch(runs[0]) as other:
            assert one is other
            assert feeds.watchers == 2
            await feeds.settle(0.01)
        await feeds.settle(10)
        for run in runs[1:]:  # those that nobody watches make room
            async with feeds.watch(run):
                pass
        assert len(made) == MOST_OPEN + 1
        assert made[0].closed
        watching = [feeds.watch(run) for run in runs[1:]]
        for each in watching:
            await each.__aenter__()
        with pytest.raises(Refusal, match="are watched already"):
            async with feeds.watch(runs[0]):
                pass
        for each in watching:
            await each.__aexit__(None, None, None)
        await feeds.close()
        assert all(each.closed for each in made)

    asyncio.run(use())
