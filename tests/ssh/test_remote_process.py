"""Programs that live on a node for long: their streams here, an agent's control, the end of either side."""

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest

import node_agent
from node_agent.agent.control import AskStatus, Start, State, Stop
from node_agent.agent.process import ProcessConfig
from node_agent.apps.dataflow.model.plan import DeploymentPlan, Replica
from node_agent.apps.dataflow.model.query import OperatorSpec, Query
from node_agent.ports import Address
from node_agent.telemetry.segments import read_records
from orchestrator.backends.agent_channel import AgentChannel, AgentLost
from orchestrator.ssh.command import SIGNALLED
from orchestrator.ssh.connection import Connection
from orchestrator.ssh.errors import Unreachable
from orchestrator.ssh.process import how_it_ended
from tests.ssh.conftest import Make
from tests.ssh.patience import until
from tests.ssh.sshd import HOME, SshServer, known_hosts
from tests.unit.query_agents import query_agent

PYTHON = "/run/python"
LIBRARIES = "/run/libraries"
SOURCES = "/run/sources"


def on(server: SshServer, folder: Path, act: Callable[[Connection], Awaitable[None]]) -> None:
    async def use() -> None:
        connection = await Connection.open(server.host, known_hosts(folder / "known", server))
        try:
            await act(connection)
        finally:
            await connection.close()

    asyncio.run(use())


def test_streams_status_and_stderr(six: list[SshServer], tmp_path: Path) -> None:
    async def act(connection: Connection) -> None:
        program = "echo begun >&2; cat; echo ended >&2; exit 7"
        process = await connection.start(["sh", "-c", program], stderr=tmp_path / "stderr")
        for line in (b"one\n", b"two\n"):
            process.writer.write(line)
            await process.writer.drain()
            assert await process.reader.readline() == line
        process.writer.write_eof()
        assert await process.reader.read() == b""
        assert await process.wait() == 7
        await process.close()
        await process.close()
        assert (tmp_path / "stderr").read_text() == "begun\nended\n"

    on(six[0], tmp_path, act)


def test_who_does_not_read_holds_up_the_program_and_nothing_else(
    six: list[SshServer], tmp_path: Path
) -> None:
    size = 12_000_000

    async def act(connection: Connection) -> None:
        process = await connection.start(["head", "-c", str(size), "/dev/zero"], stderr=tmp_path / "stderr")
        assert await connection.output(["echo", "others go on"]) == "others go on\n"
        received = 0
        while data := await process.reader.read(1 << 20):
            received += len(data)
        assert received == size
        assert await process.wait() == 0
        await process.close()

    on(six[0], tmp_path, act)


def test_closing_ends_a_program_that_lives_by_its_input(make: Make, tmp_path: Path) -> None:
    server = make()

    async def act(connection: Connection) -> None:
        process = await connection.start(["sh", "-c", "cat; touch after"], stderr=tmp_path / "stderr")
        await process.close()
        await until(lambda: (server.home / "after").exists())

    on(server, tmp_path, act)


def test_the_end_of_the_connection_is_the_end_of_the_streams(make: Make, tmp_path: Path) -> None:
    server = make()

    async def act(connection: Connection) -> None:
        process = await connection.start(["cat"], stderr=tmp_path / "stderr")
        server.cut()
        assert await process.reader.read() == b""
        assert await process.wait() is None
        await process.close()
        with pytest.raises(Unreachable):
            await connection.start(["cat"], stderr=tmp_path / "stderr")

    on(server, tmp_path, act)


def test_an_agent_is_controlled_over_ssh(make: Make, tmp_path: Path) -> None:
    assert msgspec.__file__ is not None and node_agent.__file__ is not None
    mounts = {
        Path(sys.base_prefix): PYTHON,
        Path(msgspec.__file__).parents[1]: LIBRARIES,
        Path(node_agent.__file__).parents[1]: SOURCES,
    }
    server = make(mounts=mounts)
    query = Query(
        "pair",
        (
            OperatorSpec("camera", "synthetic_source", params={"rate": 50.0, "payload": 100}),
            OperatorSpec("screen", "sink", after=("camera",)),
        ),
    )
    plan = DeploymentPlan(query, (Replica("camera", 0, "n01"), Replica("screen", 0, "n01")))
    here, keys = {"n01": Address("127.0.0.1", 0)}, {"n01": bytes(32)}
    agent = query_agent("n01", plan, here, keys, sample_period=0.1)
    config = tmp_path / "agent.json"
    config.write_bytes(msgspec.json.encode(ProcessConfig(agent, "127.0.0.1", f"{HOME}/segments")))

    async def act(connection: Connection) -> None:
        await connection.upload(config, "agent.json")
        python = f"{PYTHON}/bin/python{sys.version_info.major}.{sys.version_info.minor}"
        environment = ["env", f"PYTHONPATH={SOURCES}:{LIBRARIES}", "PYTHONDONTWRITEBYTECODE=1"]
        process = await connection.start(
            [*environment, python, "-m", "node_agent.agent", "--config", "agent.json"],
            stderr=tmp_path / "stderr",
        )
        channel = AgentChannel(process.reader, process.writer)
        assert (await channel.ask(Start(), 20)).state is State.RUNNING
        assert (await channel.ask(AskStatus(), 10)).now_ns > 0
        assert (await channel.ask(Stop("done"), 10)).state is State.STOPPED
        assert await process.wait() == 0
        with pytest.raises(AgentLost):
            await channel.ask(AskStatus(), 5)
        await channel.close()
        await process.close()

    on(server, tmp_path, act)
    kinds = [record["kind"] for record in read_records(server.home / "segments")]
    assert kinds[0] == "agent_start" and kinds[-1] == "agent_stop", (tmp_path / "stderr").read_text()


EXEC = """ForceCommand eval "exec $SSH_ORIGINAL_COMMAND\""""
"""The user's shell becomes the program, as bash does; dash waits for it, and tells its status."""


@pytest.mark.parametrize("settings", [(), (EXEC,)], ids=["below a shell", "in place of the shell"])
def test_a_killed_program_is_told_apart_from_a_lost_connection(
    make: Make, tmp_path: Path, settings: tuple[str, ...]
) -> None:
    server = make(settings=settings)

    async def act(connection: Connection) -> None:
        process = await connection.start(["sleep", "60"], stderr=tmp_path / "stderr")
        await until(lambda: bool(sleepers(server)))
        for pid in sleepers(server):
            with suppress(ProcessLookupError):  # one may end with the other
                os.kill(pid, signal.SIGKILL)
        status = await asyncio.wait_for(process.wait(), 10)
        assert status is not None and how_it_ended(status).startswith("was killed by ")
        await process.close()
        assert (await connection.run(["true"])).status == 0

    on(server, tmp_path, act)


def sleepers(server: SshServer) -> list[int]:
    return [pid for pid, line in server.command_lines().items() if line.split(b"\0")[:2] == [b"sleep", b"60"]]


def test_how_it_ended_is_said_in_words() -> None:
    assert how_it_ended(3) == "ended with status 3"
    assert how_it_ended(137) == "was killed by SIGKILL"
    assert how_it_ended(250) == "ended with status 250"
    assert how_it_ended(SIGNALLED) == "was killed by a signal"


def test_a_program_whose_line_does_not_end_is_given_up(six: list[SshServer], tmp_path: Path) -> None:
    async def act(connection: Connection) -> None:
        process = await connection.start(["cat", "/dev/zero"], stderr=tmp_path / "stderr")
        channel = AgentChannel(process.reader, process.writer)
        with pytest.raises(AgentLost, match="a line is longer than"):
            await channel.ask(AskStatus(), 20)
        await channel.close()
        await process.close()

    on(six[0], tmp_path, act)
