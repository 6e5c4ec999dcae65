"""One run that is broken, endless or slow: the server goes on for all others, and ends when it is told to."""

import asyncio
import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from orchestrator.errors import RoveError
from orchestrator.live.server import feeds as feeding
from orchestrator.live.server import totals as counting
from orchestrator.live.server.answers import Refusal
from orchestrator.live.server.catalogue import Catalogue
from orchestrator.live.server.feeds import Feeds
from orchestrator.live.server.threads import DaemonThreads
from orchestrator.live.server.totals import Totals
from orchestrator.runs.run_directory import RunDirectory
from orchestrator.runs.timeline import Change
from tests.synthetic_runs import known_run, small_sweep
from tests.unit.orchestrator.live.browser_requests import Browser, browse

pytestmark = [pytest.mark.unit, pytest.mark.timeout(60)]

TOTAL = Change(1.0, "q", "total", "", {"offered": 3, "delivered": 2, "lost": 1})


class Source:
    """Reads with ``read``, then has ended."""

    def __init__(self, read: Callable[[], list[Change]]) -> None:
        self._read = read
        self.head: dict[str, Any] = {"apps": [{}]}
        self.now = 0.0
        self.caught_up = True
        self.ended = False
        self.closed = False

    def poll(self) -> list[Change]:
        found = self._read()
        self.ended = True
        return found

    def close(self) -> None:
        self.closed = True


async def counted(totals: Totals, run: str) -> None:
    for _ in range(400):
        if run in totals.known:
            return
        await asyncio.sleep(0.05)
    raise AssertionError(f"{run} is not counted")


def failing(error: Exception) -> Callable[[], list[Change]]:
    def read() -> list[Change]:
        raise error

    return read


def test_a_name_that_is_no_text_and_a_time_beyond_all_years_are_listed_or_left_out(tmp_path: Path) -> None:
    known_run(tmp_path, run="k1").write()
    far = known_run(tmp_path, run="far").write()
    os.utime(far / "spec.yaml" if (far / "spec.yaml").exists() else far, (15_032_385_535, 10**12))
    odd = os.fsencode(tmp_path / "known") + b"/\xff\xfe"
    os.mkdir(odd)  # noqa: PTH102 - Path has no names that are no text
    Path(os.fsdecode(odd), "verdict.json").write_text("{}")

    async def act(browser: Browser) -> None:
        status, found = await browser.get("/api/runs")
        assert status == 200
        rows = {row["id"]: row for row in found["runs"]}
        assert sorted(rows) == ["far", "k1"]
        assert rows["far"]["started"] <= "9999-01-01T00:00:00.000+00:00"

    browse(tmp_path, act)
    assert len(Catalogue(tmp_path).rows()) == 2


def test_a_bad_member_ends_no_other_members_counting(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sources = {
        "bad": Source(failing(KeyError("x"))),
        "told": Source(failing(RoveError("it cannot be shown"))),
        "good": Source(lambda: [TOTAL]),
    }

    def open_source(run: RunDirectory) -> Source:
        if run.id == "none":
            raise ValueError("it cannot be opened")
        return sources[run.id]

    async def use() -> None:
        totals = Totals(open_source)
        totals.want(RunDirectory(tmp_path / name) for name in ("none", "bad", "told", "good"))
        await counted(totals, "good")
        assert totals.known["good"]["delivered so far"] == 2
        assert sources["bad"].closed
        assert sources["told"].closed
        await totals.close()

    asyncio.run(use())
    assert "it cannot be shown" not in capsys.readouterr().err


def test_a_members_file_that_cannot_be_read_now_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counting, "_PAUSE_S", 0.01)
    left = [OSError(24, "too many open files")] * 2

    def read() -> list[Change]:
        if left:
            raise left.pop()
        return [TOTAL]

    async def use() -> None:
        totals = Totals(lambda run: Source(read))
        totals.want([RunDirectory(tmp_path / "r")])
        await counted(totals, "r")
        await totals.close()

    asyncio.run(use())


def test_a_run_that_could_not_be_read_is_opened_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeding, "AGAIN_S", 0.2)
    reads = [failing(OSError(24, "too many open files")), lambda: [TOTAL]]
    made: list[Source] = []

    def open_source(run: RunDirectory) -> Source:
        made.append(Source(reads[len(made)]))
        return made[-1]

    async def use() -> None:
        feeds = Feeds(open_source)
        run = RunDirectory(tmp_path / "r")
        async with feeds.watch(run) as feed:
            while not feed.failure:
                await feed.news(1)
        with pytest.raises(Refusal, match="cannot be read any further"):
            async with feeds.watch(run):
                pass
        await asyncio.sleep(0.3)
        async with feeds.watch(run) as feed:
            while not feed.ended:
                await feed.news(1)
            assert feed.count == 1
        assert made[0].closed
        await feeds.close()

    asyncio.run(use())


def test_a_clear_error_is_what_browsers_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def open_source(run: RunDirectory) -> Source:
        if run.id == "none":
            raise RoveError("run none cannot be shown")
        return Source(failing(RoveError("run bad cannot be shown")))

    async def use() -> None:
        feeds = Feeds(open_source)
        with pytest.raises(Refusal, match="run none cannot be shown"):
            async with feeds.watch(RunDirectory(tmp_path / "none")):
                pass
        async with feeds.watch(RunDirectory(tmp_path / "bad")) as feed:
            while not feed.failure:
                await feed.news(1)
            assert feed.failure == "run bad cannot be shown"
        await feeds.close()

    asyncio.run(use())
    assert capsys.readouterr().err == ""


def test_the_server_ends_although_a_file_does_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feeding, "END_S", 0.1)
    monkeypatch.setattr(counting, "END_S", 0.1)
    answers = threading.Event()

    def hang() -> list[Change]:
        answers.wait(300)
        return []

    async def use() -> None:
        feeds, totals = Feeds(lambda run: Source(hang)), Totals(lambda run: Source(hang))
        totals.want([RunDirectory(tmp_path / "r")])
        async with feeds.watch(RunDirectory(tmp_path / "r")):
            await asyncio.sleep(0.1)
        await totals.close()
        await feeds.close()

    asyncio.run(use())
    assert all(each.daemon for each in threading.enumerate() if each.name in ("feed", "totals"))
    answers.set()


def test_threads_give_results_and_errors() -> None:
    threads = DaemonThreads(2, "t")
    assert threads.submit(max, 1, 2).result(10) == 2
    with pytest.raises(ZeroDivisionError):
        threads.submit(lambda: 1 // 0).result(10)
    threads.shutdown()
    with pytest.raises(RuntimeError):
        threads.submit(max, 1, 2)


def test_one_sparse_file_holds_up_no_other_run(tmp_path: Path) -> None:
    known_run(tmp_path, run="k1").write()
    endless = RunDirectory(known_run(tmp_path, run="k2").write())
    node = next(path.name for path in endless.nodes.iterdir())
    file = endless.segments(node) / "b0001-s000002.jsonl"
    file.touch()
    os.truncate(file, 200 << 30)

    async def act(browser: Browser) -> None:
        for run in ("k2", "k1"):
            async for message in browser.stream(f"/api/runs/{run}/changes"):
                if message["ended"]:
                    break

    browse(tmp_path, act)


def test_a_sweep_with_a_bad_member_is_counted(tmp_path: Path) -> None:
    sweep = small_sweep(tmp_path)
    bad = RunDirectory(sweep.parent / f"{sweep.name}.02")
    manifest = json.loads(bad.manifest.read_text())
    manifest["measure_from_ns"] = 10**320
    bad.manifest.write_text(json.dumps(manifest))
    with bad.events.open("a") as file:
        file.write('{"kind":"phase","phase":[1]}\n')

    async def act(browser: Browser) -> None:
        for _ in range(200):
            _, found = await browser.get(f"/api/sweeps/{sweep.name}")
            if all(found["cells"][number]["results"] for number in (0, 2)):
                return
            await asyncio.sleep(0.1)
        raise AssertionError(found)

    browse(tmp_path, act)
