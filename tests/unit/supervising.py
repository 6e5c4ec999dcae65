"""A place with a real agent for a supervisor, on this machine's loopback, and an owner that connects."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from node_agent.supervisor import PROTOCOL
from node_agent.supervisor.commands import Hello
from node_agent.supervisor.order import Program, SupervisorOrder
from orchestrator.backends.agent_channel import AgentChannel
from tests.unit.node_agent.agent.test_agent_process import config_file

RUN = "run-1"
PATIENCE_S = 20.0
PYTHON = sys.executable


def new_place(rove: Path, **changes: Any) -> Path:
    place = rove / "runs" / RUN / "n1"
    place.mkdir(parents=True, mode=0o700)
    agent = Program("agent", (PYTHON, "-m", "node_agent.agent", "--config", "agent.json"), "agent.log")
    config = json.loads(config_file(place).read_bytes())
    config["segments"] = "record/segments"
    (place / "agent.json").write_text(json.dumps(config))
    order = SupervisorOrder(RUN, "n1", PROTOCOL, lease=30.0, setup=None, services=(), agent=agent)
    (place / "order.json").write_bytes(msgspec.json.encode(msgspec.structs.replace(order, **changes)))
    return place


def supervise(command: str, place: Path, *more: str) -> tuple[int, dict[str, Any]]:
    """The status and what it printed."""
    done = subprocess.run(
        [PYTHON, "-m", "node_agent.supervisor", command, str(place), *more],
        capture_output=True,
        timeout=2 * PATIENCE_S,  # machines that test are busy
    )
    lines = done.stdout.splitlines()
    assert len(lines) == 1, (done.stdout, done.stderr)
    said: dict[str, Any] = json.loads(lines[0])
    return done.returncode, said


@asynccontextmanager
async def attached(place: Path, protocol: int = PROTOCOL) -> AsyncIterator[AgentChannel]:
    """As an SSH channel would carry it."""
    bridge = await asyncio.create_subprocess_exec(
        *(PYTHON, "-m", "node_agent.supervisor", "attach", str(place)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert bridge.stdin is not None and bridge.stdout is not None
    channel = AgentChannel(bridge.stdout, bridge.stdin)
    try:
        async with asyncio.timeout(PATIENCE_S):
            await channel.ask(Hello(protocol), PATIENCE_S)
            yield channel
    finally:
        await channel.close()
        await asyncio.wait_for(bridge.wait(), PATIENCE_S)


def processes_of(place: Path, called: bytes = b"") -> list[int]:
    """All that were started for it, as their arguments or environment show; of these, the ones so called."""
    wanted = os.fsencode(place)
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                arguments, variables = (entry / "cmdline").read_bytes(), (entry / "environ").read_bytes()
            except OSError:
                continue
            if wanted in arguments + variables and called in arguments:
                found.append(int(entry.name))
    return found
