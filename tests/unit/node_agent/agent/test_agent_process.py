"""An agent in a process of its own, under the control of its owner, on this machine's loopback."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from node_agent.agent.control import AskStatus, Costs, OpenSources, Start, State, Stop
from node_agent.agent.process import ProcessConfig
from node_agent.apps.dataflow.events import tuple_by_tuple
from node_agent.apps.dataflow.model.plan import DeploymentPlan, Replica
from node_agent.apps.dataflow.model.query import OperatorSpec, Query
from node_agent.model.cost_graph import CostGraph
from node_agent.ports import Address
from node_agent.telemetry.segments import inspect, read_records
from orchestrator.backends.agent_channel import AgentChannel, AgentLost, notification
from tests.unit.query_agents import query_agent

HOST = "127.0.0.1"
PATIENCE_S = 20.0
PAIR = Query(
    "pair",
    (
        OperatorSpec("camera", "synthetic_source", params={"rate": 50.0, "payload": 100}),
        OperatorSpec("screen", "sink", after=("camera",)),
    ),
)
PLAN = DeploymentPlan(PAIR, (Replica("camera", 0, "n1"), Replica("screen", 0, "n1")))
GRAPH = CostGraph({"n1": {}}, metric="hops", source="ground_truth", taken_ns=1)


def config_file(directory: Path, **changes: Any) -> Path:
    with socket.create_server((HOST, 0)) as probe:
        port = probe.getsockname()[1]
    agent = query_agent("n1", PLAN, {"n1": Address(HOST, port)}, {"n1": bytes(32)}, sample_period=0.1)
    config = ProcessConfig(agent, HOST, str(directory / "segments"))
    file = directory / "agent.json"
    file.write_bytes(msgspec.json.encode(msgspec.structs.replace(config, **changes)))
    return file


def records(directory: Path, kind: str) -> list[dict[str, Any]]:
    told = tuple_by_tuple(read_records(directory / "segments"))
    return [record for record in told if record["kind"] == kind]


async def start(file: Path, **streams: Any) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "node_agent.agent", "--config", str(file)),
        stderr=asyncio.subprocess.PIPE,
        **streams,
    )


@asynccontextmanager
async def over_a_socket(file: Path) -> AsyncIterator[tuple[asyncio.subprocess.Process, AgentChannel]]:
    ours, theirs = socket.socketpair()
    process = await start(file, stdin=theirs, stdout=theirs)
    theirs.close()
    channel = AgentChannel(*await asyncio.open_unix_connection(sock=ours))
    try:
        async with asyncio.timeout(PATIENCE_S):
            yield process, channel
            await process.wait()
    finally:
        await channel.close()
        if process.returncode is None:
            process.kill()
            await process.wait()


@asynccontextmanager
async def over_pipes(file: Path) -> AsyncIterator[tuple[asyncio.subprocess.Process, AgentChannel]]:
    process = await start(file, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE)
    assert process.stdin is not None and process.stdout is not None
    channel = AgentChannel(process.stdout, process.stdin)
    try:
        async with asyncio.timeout(PATIENCE_S):
            yield process, channel
            await process.wait()
    finally:
        await channel.close()
        if process.returncode is None:
            process.kill()
            await process.wait()


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    while True:
        if await condition():
            return
        await asyncio.sleep(0.02)


@pytest.mark.parametrize("carried", [over_a_socket, over_pipes])
def test_an_agent_does_as_it_is_told_over_any_stream(tmp_path: Path, carried: Any) -> None:
    async def scenario() -> None:
        async with carried(config_file(tmp_path)) as (process, channel):
            assert (await channel.ask(AskStatus(), PATIENCE_S)).state is State.NEW
            assert (await channel.ask(Start(), PATIENCE_S)).state is State.RUNNING
            channel.send_latest(notification(Costs(GRAPH)))

            async def ready() -> bool:
                return bool((await channel.ask(AskStatus(), PATIENCE_S)).ready)

            async def delivering() -> bool:
                return bool(records(tmp_path, "tuple_delivered"))

            await until(ready)
            await channel.ask(OpenSources(), PATIENCE_S)
            await until(delivering)
            assert (await channel.ask(Stop("end of run"), PATIENCE_S)).state is State.STOPPED
            assert await process.wait() == 0
            with pytest.raises(AgentLost):
                await channel.ask(AskStatus(), PATIENCE_S)

    asyncio.run(scenario())
    assert inspect(tmp_path / "segments").complete
    assert [record["reason"] for record in records(tmp_path, "agent_stop")] == ["end of run"]
    assert {record["source"] for record in records(tmp_path, "route_switch")} == {"ground_truth"}


@pytest.mark.parametrize("ending", ["terminated", "abandoned"])
def test_it_stops_in_order_when_asked_by_a_signal_or_left_alone(tmp_path: Path, ending: str) -> None:
    async def scenario() -> None:
        async with over_a_socket(config_file(tmp_path)) as (process, channel):
            await channel.ask(Start(), PATIENCE_S)
            if ending == "terminated":
                process.send_signal(signal.SIGTERM)
            else:
                await channel.close()
            assert await process.wait() == 0

    asyncio.run(scenario())
    assert inspect(tmp_path / "segments").complete


def test_one_that_cannot_listen_says_why(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with over_a_socket(config_file(tmp_path, host="192.0.2.1")) as (_, channel):
            with pytest.raises(AgentLost, match=r"cannot listen at 192\.0\.2\.1"):
                await channel.ask(Start(), PATIENCE_S)
            await channel.ask(Stop("never mind"), PATIENCE_S)

    asyncio.run(scenario())


def test_what_is_no_request_is_answered_and_survived(tmp_path: Path) -> None:
    lines = b'nonsense\n{"do": {"do": "fly"}, "id": 1}\n{"do": {"do": "status"}, "id": 2}\n'
    done = subprocess.run(
        [sys.executable, "-m", "node_agent.agent", "--config", str(config_file(tmp_path))],
        input=lines,
        capture_output=True,
        timeout=PATIENCE_S,
    )
    reports = [msgspec.json.decode(line) for line in done.stdout.splitlines()]
    assert [(report["id"], bool(report.get("error"))) for report in reports] == [
        (0, True),
        (0, True),
        (2, False),
    ]
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("text", "complaint"),
    [("{", "truncated"), ("{}", "missing required field"), (None, "No such file")],
)
def test_a_configuration_that_cannot_be_read_is_refused(
    tmp_path: Path, text: str | None, complaint: str
) -> None:
    file = tmp_path / "agent.json"
    if text is not None:
        file.write_text(text)
    command = [sys.executable, "-m", "node_agent.agent", "--config", str(file)]
    done = subprocess.run(command, stdin=subprocess.PIPE, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 2
    assert complaint in done.stderr and "Traceback" not in done.stderr


def test_the_agent_needs_nothing_of_the_orchestrator(tmp_path: Path) -> None:
    program = (
        "import sys, node_agent.agent.process, node_agent.apps.dataflow.application;"
        "print([m for m in sys.modules if m.startswith('orchestrator')])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env={**os.environ})
    assert done.stdout == "[]\n"
