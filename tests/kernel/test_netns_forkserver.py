import asyncio
import json
import os
import signal
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from node_agent.host.file_limit import LARGEST_FILE
from orchestrator.backends.netns import network
from orchestrator.backends.netns.errors import ForkServerError
from orchestrator.backends.netns.forkclient import Child, ForkServer, Launch, User
from orchestrator.backends.netns.layout import numbered
from orchestrator.backends.netns.marks import Mark
from orchestrator.services.program import Argv, Entry
from tests.kernel import programs
from tests.kernel.inside import path_of

NODES = [f"n{number:02d}" for number in range(1, 6)]


@pytest.fixture
def nodes(mark: Mark) -> Iterator[None]:
    ends = network.up(numbered(NODES), mark)
    yield
    for descriptor in ends.values():
        os.close(descriptor)


@asynccontextmanager
async def server(mark: Mark, *preload: str) -> AsyncIterator[ForkServer]:
    async with asyncio.timeout(20), await ForkServer.start(mark, preload) as started:
        yield started


def gone(pid: int) -> bool:
    """Ended and reaped: not even a zombie."""
    return not Path(f"/proc/{pid}").exists()


async def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 5
    while not condition():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.005)


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def children_of(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.usefixtures("nodes")
def test_a_child_gets_its_node_its_session_its_mark_and_nothing_of_the_servers(
    mark: Mark, tmp_path: Path
) -> None:
    async def scenario() -> None:
        async with server(mark, "colorsys") as started:
            place = tmp_path / "facts.json"
            launch = Launch(
                Entry(f"{programs.__name__}:describe", {"path": str(place)}),
                path_of(mark, "n02"),
                environment={"EXTRA": "1", "ROVE_RUN": "another"},
            )
            child = await started.spawn(launch)
            assert await child.wait() == 7
            assert gone(child.pid)
            facts = json.loads(place.read_text())
            environment = facts.pop("environment")
            assert facts == {
                "descriptors": [0, 1, 2],
                "links": ["ctl0", "lo", "wlan0"],
                "session": True,
                "uid": 0,
                "groups": facts["groups"],
                "preloaded": True,
            }
            assert environment["EXTRA"] == "1"
            assert mark.environment.items() <= environment.items()

    asyncio.run(scenario())


@pytest.mark.usefixtures("nodes")
def test_a_child_can_run_as_another_user(mark: Mark, tmp_path: Path) -> None:
    async def scenario() -> None:
        out = tmp_path / "out"
        async with server(mark) as started:
            launch = Launch(
                Argv(("sh", "-c", "id -u; id -g; id -G; sleep 60")),
                path_of(mark, "n01"),
                stdout=out,
                user=User(65534, 65534),
            )
            child = await started.spawn(launch)
            await until(lambda: out.read_text().count("\n") == 3)
            assert out.read_text().split() == ["65534"] * 3
        assert gone(child.pid)

    asyncio.run(scenario())


@pytest.mark.usefixtures("nodes")
def test_programs_on_all_nodes_at_once_and_their_output(mark: Mark, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with server(mark) as started:

            async def address(node: str) -> str:
                out = tmp_path / node
                launch = Launch(
                    Argv(("ip", "-brief", "address", "show", "wlan0")), path_of(mark, node), stdout=out
                )
                assert await (await started.spawn(launch)).wait() == 0
                return out.read_text().split()[2]

            found = await asyncio.gather(*(address(node) for node in NODES))
            assert found == [f"10.0.0.{number}/16" for number in range(1, 6)]

    asyncio.run(scenario())


@pytest.mark.usefixtures("nodes")
def test_a_failing_entry_ends_with_status_1_and_a_traceback(mark: Mark, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with server(mark) as started:
            log = tmp_path / "log"
            launch = Launch(Entry(f"{programs.__name__}:fail"), path_of(mark, "n01"), stdout=log, stderr=log)
            assert await (await started.spawn(launch)).wait() == 1
            assert "about to fail" in log.read_text()
            assert "ValueError: on purpose" in log.read_text()

    asyncio.run(scenario())


@pytest.mark.usefixtures("nodes")
@pytest.mark.parametrize("limited", [True, False])
def test_a_program_whose_files_are_limited_cannot_fill_the_disk(
    mark: Mark, tmp_path: Path, limited: bool
) -> None:
    async def scenario() -> None:
        async with server(mark) as started:
            log, size = tmp_path / "log", LARGEST_FILE + 1000
            program = Argv(("sh", "-c", f"head -c {size} /dev/zero; exit 7"))
            launch = Launch(program, path_of(mark, "n01"), stdout=log, stderr=log, limit_files=limited)
            assert await (await started.spawn(launch)).wait() == 7
            assert log.stat().st_size == (LARGEST_FILE if limited else size)

    asyncio.run(scenario())


@pytest.mark.usefixtures("nodes")
@pytest.mark.parametrize(
    ("program", "reason"),
    [
        (Argv(("no-such-program",)), "no-such-program"),
        (Entry("no_such_module:main"), "no_such_module"),
        (Entry("json:no_such_function"), "no_such_function"),
        (Entry("json:dumps", {"obj": "x" * (1 << 18)}), "too large"),
    ],
)
def test_what_cannot_start_says_why_and_the_server_lives_on(
    mark: Mark, program: Argv | Entry, reason: str
) -> None:
    async def scenario() -> None:
        async with server(mark) as started:
            with pytest.raises(ForkServerError, match=reason):
                await started.spawn(Launch(program, path_of(mark, "n01")))
            child = await started.spawn(Launch(Argv(("true",)), path_of(mark, "n01")))
            assert await child.wait() == 0

    asyncio.run(scenario())


@pytest.mark.usefixtures("nodes")
def test_a_child_that_cannot_be_prepared_says_why(mark: Mark) -> None:
    async def scenario() -> None:
        async with server(mark) as started:
            with pytest.raises(ForkServerError, match=r"FileNotFoundError.*/no/such/place"):
                launch = Launch(Argv(("true",)), path_of(mark, "n01"), directory=Path("/no/such/place"))
                await started.spawn(launch)

    asyncio.run(scenario())


def test_no_namespace_no_child(mark: Mark, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with server(mark) as started:
            for place in (tmp_path / "nothing", tmp_path):
                with pytest.raises(ForkServerError, match="not a network namespace"):
                    await started.spawn(Launch(Argv(("true",)), place))

    asyncio.run(scenario())


def test_a_module_that_cannot_be_preloaded_is_named(mark: Mark) -> None:
    async def scenario() -> None:
        with pytest.raises(ForkServerError, match="no_such_module"):
            await ForkServer.start(mark, ["no_such_module"])

    asyncio.run(scenario())


@pytest.mark.usefixtures("nodes")
def test_a_signal_reaches_the_whole_process_group(mark: Mark) -> None:
    async def scenario() -> None:
        async with server(mark) as started:
            child = await started.spawn(Launch(Argv(("sh", "-c", "sleep 60 & wait")), path_of(mark, "n01")))
            await until(lambda: bool(children_of(child.pid)))
            (inner,) = children_of(child.pid)
            await child.signal(signal.SIGKILL)
            assert await child.wait() == -signal.SIGKILL
            await until(lambda: gone(inner))
            await child.signal(signal.SIGKILL)

    asyncio.run(scenario())


@pytest.mark.usefixtures("nodes")
def test_closing_ends_daemons_that_left_their_group(mark: Mark) -> None:
    async def scenario() -> None:
        async with server(mark) as started:
            launch = Launch(Argv(("sh", "-c", "setsid sh -c 'sleep 60 & sleep 60' &")), path_of(mark, "n01"))
            await (await started.spawn(launch)).wait()
            await until(lambda: len(mark.processes()) == 4)
            inside = [process.pid for process in mark.processes()]
        assert all(gone(pid) for pid in inside)

    asyncio.run(scenario())


@pytest.mark.usefixtures("nodes")
def test_a_terminated_server_ends_even_what_forgot_mark_and_parent(mark: Mark, tmp_path: Path) -> None:
    """Without a control group, as in a rootless run, nobody else could."""

    async def scenario() -> None:
        out = tmp_path / "pid"
        async with server(mark) as started:
            script = "env -i setsid sh -c 'echo $$; exec sleep 60' &"
            launch = Launch(Argv(("sh", "-c", script)), path_of(mark, "n01"), stdout=out)
            child = await started.spawn(launch)
            await until(lambda: out.read_text().endswith("\n"))
            orphan = int(out.read_text())
            await child.wait()
            os.kill(parent_of(orphan), signal.SIGTERM)
            await until(lambda: gone(orphan))

    asyncio.run(scenario())


@pytest.mark.usefixtures("nodes")
def test_a_killed_server_takes_its_children_along_and_is_noticed(mark: Mark) -> None:
    async def scenario() -> None:
        async with server(mark) as started:
            child = await started.spawn(Launch(Argv(("sleep", "60")), path_of(mark, "n01")))
            os.kill(parent_of(child.pid), signal.SIGKILL)
            with pytest.raises(ForkServerError, match="gone"):
                await child.wait()
            with pytest.raises(ForkServerError, match="gone"):
                await started.spawn(Launch(Argv(("true",)), path_of(mark, "n01")))
            await until(lambda: gone(child.pid))

    asyncio.run(scenario())


@pytest.mark.usefixtures("nodes")
def test_the_client_keeps_no_descriptors(mark: Mark) -> None:
    def count() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    async def scenario() -> None:
        async with server(mark) as started:

            async def ten() -> list[Child]:
                launch = Launch(Argv(("true",)), path_of(mark, "n01"))
                return await asyncio.gather(*(started.spawn(launch) for _ in range(10)))

            before = count()
            for child in [*await ten(), *await ten()]:
                await child.wait()
            assert count() == before

    before = count()
    asyncio.run(scenario())
    assert count() == before
