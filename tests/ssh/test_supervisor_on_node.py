"""A supervisor on a node, started over SSH by a user who is not root, with programs that need root."""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec

import node_agent
from node_agent.supervisor import PROTOCOL
from node_agent.supervisor.commands import AskClock, End, Hello
from node_agent.supervisor.order import Program, SupervisorOrder
from orchestrator.backends.agent_channel import AgentChannel
from orchestrator.ssh.connection import Connection
from tests.ssh.conftest import Make
from tests.ssh.patience import PATIENCE_S, until
from tests.ssh.sshd import FIRST_ID, HOME, SshServer
from tests.ssh.test_remote_process import LIBRARIES, PYTHON, SOURCES, on

PLACE = f"{HOME}/.rove/runs/run/n01"
INTERPRETER = f"{PYTHON}/bin/python{sys.version_info.major}.{sys.version_info.minor}"
PATHS = ["env", f"PYTHONPATH={SOURCES}:{LIBRARIES}", "PYTHONDONTWRITEBYTECODE=1"]
SUPERVISOR = [*PATHS, INTERPRETER, "-m", "node_agent.supervisor"]
DEAF = (
    "import os, signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(os.getuid(), flush=True); "
)
DEAF += "time.sleep(600)"
SETUP = """
import os, sys
print('{"ready": true}', flush=True)
sys.stdin.read()
open("undone", "w").write(str(os.getuid()))
"""
MOUNTED = {Path(sys.base_prefix): PYTHON}
for module, where in ((msgspec, LIBRARIES), (node_agent, SOURCES)):
    assert module.__file__ is not None
    MOUNTED[Path(module.__file__).parents[1]] = where
ORDER = SupervisorOrder(
    run="run",
    node="n01",
    protocol=PROTOCOL,
    lease=60.0,
    setup=Program("set-up", (INTERPRETER, "-c", SETUP), "setup.log", privileged=True),
    services=(Program("olsr", (INTERPRETER, "-c", DEAF), "routing.log", privileged=True),),
    agent=Program("agent", ("true",), "agent.log"),
)


def node(make: Make, sudo: bool) -> SshServer:
    return make(sudo=sudo, mounts=MOUNTED)


def place_of(server: SshServer) -> Path:
    return server.home / ".rove" / "runs" / "run" / "n01"


def own_processes(server: SshServer) -> list[int]:
    """But sshd's, which have the user's rights, too."""
    return [
        pid
        for pid, called in server.command_lines().items()
        if called and not called.startswith((b"sshd", b"/usr/sbin/sshd"))
    ]


async def said(connection: Connection, *command: str) -> tuple[int, dict[str, Any]]:
    done = await connection.run([*SUPERVISOR, *command], timeout=60)
    return done.status, json.loads(done.stdout)


async def place(connection: Connection, folder: Path, order: SupervisorOrder = ORDER) -> None:
    await connection.output(["mkdir", "-m", "700", "-p", PLACE])
    file = folder / "order.json"
    file.write_bytes(msgspec.json.encode(order))
    await connection.upload(file, f"{PLACE}/order.json")


async def attach(
    connection: Connection, folder: Path, act: Callable[[AgentChannel], Awaitable[None]]
) -> None:
    process = await connection.start([*SUPERVISOR, "attach", PLACE], stderr=folder / "stderr")
    channel = AgentChannel(process.reader, process.writer)
    try:
        await channel.ask(Hello(PROTOCOL), PATIENCE_S)
        await act(channel)
    finally:
        await channel.close()
        await process.close()


def test_programs_of_root_end_with_the_run_and_a_run_outlives_its_connection(
    make: Make, tmp_path: Path
) -> None:
    server = node(make, sudo=True)
    log = place_of(server) / "record" / "routing.log"

    async def begin(connection: Connection) -> None:
        await place(connection, tmp_path)
        assert (await said(connection, "start", PLACE))[0] == 0

        async def ask(channel: AgentChannel) -> None:
            await channel.ask(AskClock(), PATIENCE_S)
            await until(lambda: log.read_text() == "0\n")

        await attach(connection, tmp_path, ask)

    async def finish(connection: Connection) -> None:
        async def ask(channel: AgentChannel) -> None:
            await channel.ask(End("enough"), PATIENCE_S)

        await attach(connection, tmp_path, ask)

    on(server, tmp_path, begin)
    assert own_processes(server) != []
    on(server, tmp_path, finish)
    asyncio.run(until(lambda: own_processes(server) == []))
    assert (place_of(server) / "undone").read_text() == "0"
    ended = json.loads((place_of(server) / "ended.json").read_bytes())
    assert ended["trouble"] == ["olsr ended with status 137: 0"]  # deaf to SIGTERM: its lifeline killed it
    assert log.stat().st_uid == FIRST_ID


def test_programs_of_root_do_not_outlive_a_supervisor_that_is_killed(make: Make, tmp_path: Path) -> None:
    server = node(make, sudo=True)

    async def act(connection: Connection) -> None:
        await place(connection, tmp_path)
        status, ready = await said(connection, "start", PLACE)
        assert status == 0
        log = place_of(server) / "record" / "routing.log"
        await until(lambda: log.read_text() == "0\n")
        await connection.output(["kill", "-9", str(ready["pid"])])
        status, ended = await said(connection, "end", PLACE)
        assert (status, ended["was"], ended["left"]) == (0, "dead", [])
        assert own_processes(server) == []

    on(server, tmp_path, act)
    assert (place_of(server) / "undone").read_text() == "0"


def test_where_sudo_is_refused_the_error_says_so(make: Make, tmp_path: Path) -> None:
    server = node(make, sudo=False)

    async def act(connection: Connection) -> None:
        await place(connection, tmp_path)
        status, told = await said(connection, "start", PLACE)
        assert status == 1
        assert told["error"].startswith("set-up ended with status 1: sudo: ")
        await until(lambda: own_processes(server) == [])

    on(server, tmp_path, act)


def test_how_a_run_ended_is_told_on_a_full_disk(make: Make, tmp_path: Path) -> None:
    server = make(mounts=MOUNTED, disk=2_000_000)
    small = msgspec.structs.replace(ORDER, setup=None, services=())

    async def act(connection: Connection) -> None:
        await place(connection, tmp_path, small)
        assert (await said(connection, "start", PLACE))[0] == 0
        filled = await connection.run(["dd", "if=/dev/zero", f"of={HOME}/fill", "bs=1k"])
        assert b"No space left" in filled.stderr
        status, told = await said(connection, "end", PLACE, "--reason", "enough")
        assert (status, told["was"]) == (0, "running")
        assert told["ended"]["reason"] == "enough" and told["ended"]["in_order"]

    on(server, tmp_path, act)
