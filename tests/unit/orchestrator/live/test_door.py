"""The door of a run: who may ask through it, what is answered, and what is left when the run is over."""

import asyncio
import getpass
import itertools
import json
import shutil
import stat
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from node_agent.telemetry.metrics import Sample
from orchestrator.errors import BadInput
from orchestrator.live import desk, door, mirror
from orchestrator.live.door import NotLive, Watching, node_metrics, open_door, open_network_door, set_by_hand
from orchestrator.runs.files import read_lines
from orchestrator.runs.journal import Journal
from orchestrator.runs.run_directory import RunDirectory
from tests.unit.orchestrator.live.watched_backend import WatchedBackend

SAMPLES = (Sample("rove_agent_boot", (), 1.0), Sample("rove_refused_total", ("x", "y"), 2.0, "faces"))
PATIENCE_S = 10.0
Act = Callable[[WatchedBackend, RunDirectory], Awaitable[None]]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mirror, "PERIOD_S", 0.02)
    monkeypatch.setattr(mirror, "AGAIN_S", 0.05)
    monkeypatch.setattr(door, "RECONNECT_S", 0.02)


def opened(tmp_path: Path, act: Act) -> RunDirectory:
    # Longer than the path of a socket may be.
    directory = RunDirectory(tmp_path / ("x" * 120) / "r1")
    directory.temporary.mkdir(parents=True)

    async def use() -> None:
        backend = WatchedBackend("n1", "n2")
        backend.samples["n1"] = SAMPLES
        async with asyncio.timeout(PATIENCE_S), open_door(backend, directory):
            await act(backend, directory)

    with Journal.create(directory.journal):
        asyncio.run(use())
    return directory


async def until(condition: Callable[[], bool]) -> None:
    while True:
        if condition():
            return
        await asyncio.sleep(0.01)


async def say(directory: RunDirectory, said: bytes) -> bytes:
    async with door._connected(directory) as (reader, writer):
        writer.write(said)
        return await reader.readline()


def test_metrics_of_a_node(tmp_path: Path) -> None:
    async def act(backend: WatchedBackend, directory: RunDirectory) -> None:
        assert await node_metrics(directory, "n1", 5.0) == SAMPLES
        assert await node_metrics(directory, "n2", 5.0) == ()
        mode = (directory.temporary / door.SOCKET).stat().st_mode
        assert stat.S_ISSOCK(mode) and stat.S_IMODE(mode) == 0o600

    directory = opened(tmp_path, act)
    assert list(directory.temporary.iterdir()) == []
    with pytest.raises(NotLive, match="run r1 cannot be asked: it does not go on"):
        asyncio.run(node_metrics(directory, "n1", 5.0))


class Changed:
    """Notes what it is asked to change."""

    def __init__(self) -> None:
        self.asked: list[tuple[dict[str, Any], str]] = []

    async def set(self, wanted: Mapping[str, Any], by: str) -> str:
        if "bad" in wanted:
            raise BadInput("line one\nline two")
        self.asked.append((dict(wanted), by))
        return "done so"


def test_what_cannot_be_changed_says_what_to_do_instead(tmp_path: Path) -> None:
    async def act(backend: WatchedBackend, directory: RunDirectory) -> None:
        with pytest.raises(BadInput, match="in virtual time nobody can come in between"):
            await set_by_hand(directory, {"cut": ["a", "b"]})

    opened(tmp_path, act)


def test_a_network_without_a_run_has_a_door_to_change_it(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path / "r1")
    directory.temporary.mkdir(parents=True)
    changed = Changed()

    async def use() -> None:
        async with asyncio.timeout(PATIENCE_S), open_network_door(changed, directory):
            assert await set_by_hand(directory, {"cut": ["a", "b"]}) == "done so"
            with pytest.raises(BadInput, match="line one\nline two"):
                await set_by_hand(directory, {"bad": 1})
            with pytest.raises(NotLive, match="no agents run"):
                await node_metrics(directory, "a", 5.0)
            async with Watching(directory) as watching:
                await until(lambda: watching.connected)

    with Journal.create(directory.journal):
        asyncio.run(use())
    assert changed.asked == [({"cut": ["a", "b"]}, getpass.getuser())]
    with pytest.raises(NotLive, match="it does not go on"):
        asyncio.run(set_by_hand(directory, {}))


def test_a_run_that_never_was(tmp_path: Path) -> None:
    with pytest.raises(NotLive, match="it does not go on"):
        asyncio.run(node_metrics(RunDirectory(tmp_path / "r9"), "n1", 5.0))


def test_many_who_ask_at_once_are_one_question(tmp_path: Path) -> None:
    async def act(backend: WatchedBackend, directory: RunDirectory) -> None:
        backend.gate.clear()
        asking = [asyncio.create_task(node_metrics(directory, "n1", 5.0)) for _ in range(20)]
        await until(lambda: bool(backend.asked))
        asking[0].cancel()
        backend.gate.set()
        found = await asyncio.gather(*asking[1:])
        assert found == [SAMPLES] * 19
        assert backend.asked == ["n1"]

    opened(tmp_path, act)


def test_what_cannot_be_had_is_one_line(tmp_path: Path) -> None:
    async def act(backend: WatchedBackend, directory: RunDirectory) -> None:
        backend.lost.add("n2")
        with pytest.raises(NotLive, match=r"^n2 is\\nlost$"):
            await node_metrics(directory, "n2", 5.0)
        with pytest.raises(NotLive, match="no such node"):
            await node_metrics(directory, "../../etc", 5.0)
        backend.gate.clear()
        with pytest.raises(NotLive, match=r"did not answer within 0.1 s"):
            await node_metrics(directory, "n1", 0.1)

    opened(tmp_path, act)


def test_a_node_that_answers_nothing_is_asked_rarely(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(desk, "ASK_S", 0.02)

    async def act(backend: WatchedBackend, directory: RunDirectory) -> None:
        backend.gate.clear()
        for _ in range(10):
            with pytest.raises(NotLive):
                await node_metrics(directory, "n1", 5.0)
        assert len(backend.asked) == desk.MOST_SILENT

    opened(tmp_path, act)


@pytest.mark.parametrize(
    "said",
    [b"\n", b"{}\n", b'{"do": "stop"}\n', b"[" * 3000 + b"\n", b'{"do": "metrics", "node": 5}\n', b"\xff\n"],
)
def test_what_is_no_request_gets_one_line(tmp_path: Path, said: bytes) -> None:
    async def act(backend: WatchedBackend, directory: RunDirectory) -> None:
        answer = json.loads(await say(directory, said))
        assert answer["error"].startswith("not a request")
        assert await node_metrics(directory, "n1", 5.0) == SAMPLES

    opened(tmp_path, act)


def test_an_endless_line_is_given_up(tmp_path: Path) -> None:
    async def act(backend: WatchedBackend, directory: RunDirectory) -> None:
        with suppress(ConnectionError):  # it may be closed before it is read
            assert await say(directory, b"x" * 100_000) == b""
        assert await node_metrics(directory, "n1", 5.0) == SAMPLES

    opened(tmp_path, act)


def test_too_many_clients_are_turned_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "MOST_CLIENTS", 2)

    async def act(backend: WatchedBackend, directory: RunDirectory) -> None:
        async with Watching(directory) as one, Watching(directory) as two:
            await until(lambda: one.connected and two.connected)
            with pytest.raises(NotLive):
                await node_metrics(directory, "n1", 5.0)

    opened(tmp_path, act)


def test_another_user_is_turned_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def act(backend: WatchedBackend, directory: RunDirectory) -> None:
        monkeypatch.setattr(door, "is_own", lambda connection: False)
        with pytest.raises(NotLive, match="another user opened it"):
            await node_metrics(directory, "n1", 5.0)
        async with asyncio.timeout(5.0):
            with pytest.raises(PermissionError):
                await say(directory, b'{"do": "metrics", "node": "n1"}\n')
        assert backend.asked == []

    opened(tmp_path, act)


def mirrored(directory: RunDirectory) -> dict[str, bytes]:
    place = directory.temporary / "live"
    return {str(path.relative_to(place)): path.read_bytes() for path in place.rglob("*") if path.is_file()}


def test_records_of_remote_nodes_are_mirrored_while_somebody_watches(tmp_path: Path) -> None:
    async def act(backend: WatchedBackend, directory: RunDirectory) -> None:
        backend.files["n1"] = {(1, 1): b"0123456789", (1, 2): b"ab"}
        backend.pictures["n1"] = {"screen-0": (5, b"first"), "empty-0": (0, b"")}
        await asyncio.sleep(0.1)
        assert backend.reads == 0
        async with Watching(directory):
            expected = {
                "n1/segments/b0001-s000001.jsonl": b"0123456789",
                "n1/segments/b0001-s000002.jsonl": b"ab",
                "n1/frames/screen-0/latest.jpg": b"first",
            }
            await until(lambda: mirrored(directory) == expected)
            backend.files["n1"][1, 2] += b"cdefgh"
            backend.files["n1"][2, 1] = b"next boot"
            backend.pictures["n1"]["screen-0"] = 6, b"second"
            expected["n1/segments/b0001-s000002.jsonl"] = b"abcdefgh"
            expected["n1/segments/b0002-s000001.jsonl"] = b"next boot"
            expected["n1/frames/screen-0/latest.jpg"] = b"second"
            await until(lambda: mirrored(directory) == expected)
        await asyncio.sleep(0.1)
        reads = backend.reads
        backend.files["n1"][2, 1] += b"!"
        await asyncio.sleep(0.1)
        assert backend.reads == reads, "nobody watches any more"
        async with Watching(directory):
            expected["n1/segments/b0002-s000001.jsonl"] += b"!"
            await until(lambda: mirrored(directory) == expected)
        for path in (directory.temporary / "live").rglob("*"):
            assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600)

    opened(tmp_path, act)


def test_a_lost_node_does_not_delay_the_others(tmp_path: Path) -> None:
    async def act(backend: WatchedBackend, directory: RunDirectory) -> None:
        backend.lost.add("n1")
        backend.files = {"n1": {(1, 1): b"one"}, "n2": {(1, 1): b"two"}}
        async with Watching(directory):
            await until(lambda: mirrored(directory) == {"n2/segments/b0001-s000001.jsonl": b"two"})
            backend.lost.clear()
            await until(lambda: "n1/segments/b0001-s000001.jsonl" in mirrored(directory))

    opened(tmp_path, act)


def test_a_node_that_hangs_does_not_delay_the_others(tmp_path: Path) -> None:
    async def act(backend: WatchedBackend, directory: RunDirectory) -> None:
        backend.hanging.add("n1")
        backend.files = {"n1": {(1, 1): b"one"}, "n2": {(1, 1): b"two"}}
        async with Watching(directory):
            await until(lambda: mirrored(directory) == {"n2/segments/b0001-s000001.jsonl": b"two"})
            backend.files["n2"][1, 2] = b"more"
            await until(lambda: len(mirrored(directory)) == 2)

    opened(tmp_path, act)


def test_a_copy_has_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mirror, "MOST_BYTES", 8)

    async def act(backend: WatchedBackend, directory: RunDirectory) -> None:
        backend.files["n1"] = {(1, 1): bytes(1000)}
        async with Watching(directory):
            await until(lambda: bool(mirrored(directory)))
            await asyncio.sleep(0.2)
        assert [len(data) for data in mirrored(directory).values()] == [8]

    opened(tmp_path, act)


def test_nothing_is_copied_to_a_disk_that_is_almost_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = [mirror.LEAST_FREE - 1]
    usage = type(shutil.disk_usage(tmp_path))
    monkeypatch.setattr("shutil.disk_usage", lambda path: usage(10**12, 0, free[0]))

    async def act(backend: WatchedBackend, directory: RunDirectory) -> None:
        backend.files["n1"] = {(1, 1): b"one"}
        async with Watching(directory) as watching:
            await until(lambda: watching.connected and directory.events.exists())
            await asyncio.sleep(0.2)
            assert backend.reads == 0 and mirrored(directory) == {}
            free[0] = mirror.LEAST_FREE
            await until(lambda: bool(mirrored(directory)))
        (event,) = read_lines(directory.events)
        assert event["kind"] == "live" and "the disk is almost full" in event["error"]

    opened(tmp_path, act)


@pytest.mark.parametrize(("total", "least"), [(10**12, 10**9), (10**9, 5 * 10**7)])
def test_a_small_disk_may_be_fuller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, total: int, least: int
) -> None:
    usage = type(shutil.disk_usage(tmp_path))
    copier = mirror.Mirror(WatchedBackend(), RunDirectory(tmp_path))
    for free in (least - 1, least):
        monkeypatch.setattr("shutil.disk_usage", lambda path, free=free: usage(total, 0, free))
        assert asyncio.run(copier._has_room()) == (free == least)


def test_nothing_is_written_after_the_door_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[Path] = []
    done: list[Path] = []
    write = mirror._write_at

    def slowly(temporary: Path, path: Path, offset: int, data: bytes) -> None:
        begun.append(path)
        time.sleep(0.3)
        write(temporary, path, offset, data)
        done.append(path)

    monkeypatch.setattr(mirror, "_write_at", slowly)

    async def act(backend: WatchedBackend, directory: RunDirectory) -> None:
        backend.files = {node: {(1, 1): b"one"} for node in ("n1", "n2")}
        watching = await Watching(directory).__aenter__()
        await until(lambda: len(begun) == 2)
        assert watching.connected and done == []
        task = watching._task
        assert task is not None
        task.cancel()

    directory = opened(tmp_path, act)
    assert sorted(begun) == sorted(done)
    shutil.rmtree(directory.temporary)
    with pytest.raises(FileNotFoundError):
        write(directory.temporary, begun[0], 0, b"late")
    assert not directory.temporary.exists()


def test_who_watches_connects_again(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path / "r1")
    directory.temporary.mkdir(parents=True)

    async def use() -> None:
        backend = WatchedBackend("n1")
        backend.files["n1"] = {(1, 1): b"one"}
        async with asyncio.timeout(PATIENCE_S), Watching(directory) as watching:
            await asyncio.sleep(0.05)
            assert not watching.connected
            for _ in range(2):
                async with open_door(backend, directory):
                    await until(lambda: watching.connected and bool(mirrored(directory)))
                await until(lambda: not watching.connected)

    with Journal.create(directory.journal):
        asyncio.run(use())


def test_opening_a_door_leaves_the_umask_of_other_threads(tmp_path: Path) -> None:
    wrong: list[int] = []
    ended = threading.Event()

    def make() -> None:
        for number in itertools.count():
            if ended.is_set():
                return
            made = tmp_path / f"d{number}"
            made.mkdir(0o777)
            if stat.S_IMODE(made.stat().st_mode) != expected:
                wrong.append(number)
            made.rmdir()

    (tmp_path / "first").mkdir(0o777)
    expected = stat.S_IMODE((tmp_path / "first").stat().st_mode)
    making = threading.Thread(target=make)
    making.start()
    try:
        for number in range(300):
            directory = RunDirectory(tmp_path / f"r{number}")
            directory.temporary.mkdir(parents=True)
            door._listening(directory).close()
            mode = (directory.temporary / door.SOCKET).stat().st_mode
            assert stat.S_ISSOCK(mode) and stat.S_IMODE(mode) == 0o600
    finally:
        ended.set()
        making.join()
    assert wrong == []


@pytest.mark.parametrize("linked", ["socket", "tmp"])
def test_no_link_leads_to_another_socket(tmp_path: Path, linked: str) -> None:
    other = tmp_path / "other"
    other.mkdir()
    directory = RunDirectory(tmp_path / "r1")
    directory.path.mkdir()
    if linked == "tmp":
        directory.temporary.symlink_to(other)
    else:
        directory.temporary.mkdir()
        (directory.temporary / door.SOCKET).symlink_to(other / door.SOCKET)
    assert asked_for(directory, other / door.SOCKET, alive=True) == 0


def test_a_run_that_has_ended_is_not_connected_to(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path / "r1")
    directory.temporary.mkdir(parents=True)
    assert asked_for(directory, directory.temporary / door.SOCKET, alive=False) == 0
    assert asked_for(directory, directory.temporary / door.SOCKET, alive=True) > 0


def asked_for(directory: RunDirectory, listens: Path, alive: bool) -> int:
    """Returns how many connections reach a socket while the run is watched and asked."""
    reached = 0

    def reach(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal reached
        reached += 1
        writer.close()

    async def use() -> None:
        async with await asyncio.start_unix_server(reach, listens), Watching(directory) as watching:
            with pytest.raises(NotLive):
                await node_metrics(directory, "n1", 5.0)
            await asyncio.sleep(0.2)
            assert not watching.connected

    journal = Journal.create(directory.journal)
    if not alive:
        journal.close()
    asyncio.run(use())
    journal.close()
    directory.journal.unlink()
    listens.unlink(missing_ok=True)
    return reached


def test_a_door_leaves_no_descriptors(tmp_path: Path) -> None:
    async def act(backend: WatchedBackend, directory: RunDirectory) -> None:
        await node_metrics(directory, "n1", 5.0)

    opened(tmp_path / "first", act)
    before = len(list(Path("/proc/self/fd").iterdir()))
    opened(tmp_path / "second", act)
    assert len(list(Path("/proc/self/fd").iterdir())) <= before
