"""An agent's process that asks a routing daemon for its costs, as its configuration says."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from node_agent.agent.control import AskStatus, Start, Stop
from node_agent.linkstate.config import LinkStateConfig
from node_agent.linkstate.probe.core import ProbeConfig
from tests.unit.captured import captured, pages, server
from tests.unit.networks import free_port
from tests.unit.node_agent.agent.test_agent_process import PATIENCE_S, config_file, over_a_socket, until

GRAPH = {"/NetworkGraph": captured("olsrd/node1/netjson_NetworkGraph.json")}


@pytest.mark.parametrize("kind", ["netjson", "kernel", "probe"])
def test_the_agent_is_ready_when_its_source_has_answered(tmp_path: Path, kind: str) -> None:
    async def scenario() -> None:
        async with server(pages(GRAPH)) as port:
            link_state = LinkStateConfig(kind, port=port, probe=ProbeConfig(port=free_port()))
            file = config_file(tmp_path, link_state=link_state)
            async with over_a_socket(file) as (process, channel):
                await channel.ask(Start(), PATIENCE_S)

                async def ready() -> bool:
                    return bool((await channel.ask(AskStatus(), PATIENCE_S)).ready)

                await until(ready)
                await channel.ask(Stop("enough"), PATIENCE_S)
                assert await process.wait() == 0

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("link_state", "complaint"),
    [
        (LinkStateConfig("crystal_ball"), "there is no link-state reader 'crystal_ball'"),
        (LinkStateConfig("kernel", metric="etx"), "reports hops, not etx"),
    ],
)
def test_a_link_state_that_cannot_be_is_refused(
    tmp_path: Path, link_state: LinkStateConfig, complaint: str
) -> None:
    command = [
        sys.executable,
        "-m",
        "node_agent.agent",
        "--config",
        str(config_file(tmp_path, link_state=link_state)),
    ]
    done = subprocess.run(command, stdin=subprocess.PIPE, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 2
    assert complaint in done.stderr and "Traceback" not in done.stderr
