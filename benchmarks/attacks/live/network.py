"""A live network under siege: agents as processes on addresses of the loopback device, with a query flowing.

The watched stream goes from ``camera`` through ``op`` to ``screen``, on honest nodes. ``mallory`` has parts
that give it keys and rights: ``spy``, another source of ``op``, and one of two replicas of ``side``, a branch
of its own. A node that runs an operator of a stream can falsify that stream: nothing is promised and nothing
checked there. No agent runs on ``mallory``: the siege speaks for it. Probers measure costs, and routers
exchange what they know, so that all ports of an agent are open.
"""

import asyncio
import contextlib
import os
import resource
import sys
from asyncio.subprocess import PIPE, Process
from collections import Counter
from pathlib import Path

import msgspec
from msgspec import Struct

from benchmarks.attacks.live.query import payload_of
from benchmarks.attacks.speaking import RUN, Speaker, key_settings
from node_agent.agent.config import AgentConfig
from node_agent.agent.control import OpenSources, Start, Stop
from node_agent.agent.process import ProcessConfig
from node_agent.apps.dataflow.config import DataflowConfig, Switching
from node_agent.apps.dataflow.model.decision import Rule
from node_agent.apps.dataflow.model.plan import DeploymentPlan, Replica
from node_agent.apps.dataflow.model.query import OperatorSpec, Query
from node_agent.apps.dataflow.switching.exchange import Mode
from node_agent.linkstate.config import LinkStateConfig
from node_agent.linkstate.probe.core import ProbeConfig
from node_agent.ports import Address
from orchestrator.backends.agent_channel import AgentChannel, AgentLost
from orchestrator.runs.manifest import RecordedApp

SOURCE, HONEST, MALLORY, SINK = NODES = ("source", "honest", "mallory", "sink")
AGENTS = (SOURCE, HONEST, SINK)
PORT, PROBE_PORT = 7000, 7698
RATE = 100.0
QUERY = Path(__file__).with_name("query.py")
SPIED = b"spied "
"""How the payloads of mallory's own source begin."""
ANSWER_S = 20.0
FLOWS_WITHIN_S = 20.0
ENOUGH = 20
"""Tuples that have to arrive after an attack to show that the query flows."""


class Usage(Struct, frozen=True):
    """The resources of the agent that uses most."""

    resident_mb: float
    descriptors: int
    log_bytes: int


class Delivered(Struct, frozen=True):
    """What the sink got. ``forged``: claimed to be the camera's, but not made by it, or repeated."""

    count: int
    highest: int
    forged: int
    missing: int


def hosts() -> dict[str, str]:
    """Returns addresses for this process alone: several sieges may run at once."""
    number = os.getpid()
    return {
        node: f"127.{80 + number % 100}.{number // 100 % 250}.{index}" for index, node in enumerate(NODES, 11)
    }


class LiveNetwork:
    """``root`` is the directory that agents may write to."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.starts = 0
        self.directory = root
        self.hosts = hosts()
        self.mallory = Speaker(MALLORY, NODES)
        self.ledger = root / "ledger"
        self._agents: dict[str, Process] = {}
        self._channels: dict[str, AgentChannel] = {}

    def plan(self) -> DeploymentPlan:
        operators = (
            OperatorSpec("camera", "beat", params={"rate": RATE}),
            OperatorSpec("spy", "beat", params={"rate": RATE}),
            OperatorSpec("op", "union", ("camera", "spy")),
            OperatorSpec("screen", "ledger", ("op",), {"file": str(self.ledger)}),
            OperatorSpec("side", "union", ("camera",)),
            OperatorSpec("drain", "sink", ("side",)),
        )
        query = Query("siege", operators, "exactly_once", module=str(QUERY))
        placed = (
            ("camera", 0, SOURCE),
            ("spy", 0, MALLORY),
            ("op", 0, HONEST),
            ("screen", 0, SINK),
            ("side", 0, HONEST),
            ("side", 1, MALLORY),
            ("drain", 0, SINK),
        )
        return DeploymentPlan(query, tuple(Replica(*each) for each in placed))

    def apps(self) -> dict[str, RecordedApp]:
        """Returns the plan as a manifest records it."""
        return {"query": RecordedApp("query", "query", {"plan": msgspec.to_builtins(self.plan())})}

    def address(self, node: str) -> tuple[str, int]:
        return self.hosts[node], PORT

    async def start(self) -> None:
        self.starts += 1
        self.directory = self._root / str(self.starts) / RUN
        self.directory.mkdir(parents=True)
        self.ledger = self.directory / "ledger"
        self.ledger.touch()
        switching = Switching(Rule("shortest_path"), period=0.5, mode=Mode.EXCHANGE)
        for node in AGENTS:
            config = ProcessConfig(
                AgentConfig(
                    RUN,
                    node,
                    {name: Address(host, PORT) for name, host in self.hosts.items()},
                    apps=(DataflowConfig(self.plan(), switching).as_app(),),
                    sample_period=0.5,
                    **key_settings(node, NODES),
                ),
                self.hosts[node],
                str(self.segments(node)),
                LinkStateConfig("probe", probe=ProbeConfig(budget=20_000.0, port=PROBE_PORT)),
            )
            file = self.directory / f"{node}.json"
            file.write_bytes(msgspec.json.encode(config))
            with (self.directory / f"{node}.log").open("wb") as log:
                command = (sys.executable, "-m", "node_agent.agent", "--config", str(file))
                agent = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, stderr=log)
            self._agents[node] = agent
            assert agent.stdin is not None and agent.stdout is not None
            self._channels[node] = AgentChannel(agent.stdout, agent.stdin)
        for channel in self._channels.values():
            await channel.ask(Start(), ANSWER_S)
        await self._channels[SOURCE].ask(OpenSources(), ANSWER_S)

    def segments(self, node: str) -> Path:
        return self.directory / "nodes" / node / "segments"

    def ended(self) -> list[str]:
        """Returns agents whose process has ended, or that report that they have failed."""
        return [
            node
            for node in AGENTS
            if self._agents[node].returncode is not None or self._channels[node].failure
        ]

    def last_words(self, node: str) -> str:
        return self._channels[node].failure or (self.directory / f"{node}.log").read_text()[-300:]

    async def restart(self) -> None:
        """Starts the whole network again, in a directory of its own, after an agent or the query has
        ended.
        """
        await self.stop()
        await self.start()

    async def flows(self, within: float = FLOWS_WITHIN_S) -> bool:
        """Says whether more tuples arrive at the sink soon."""
        before = self.delivered().count
        deadline = asyncio.get_running_loop().time() + within
        while asyncio.get_running_loop().time() < deadline:
            if self.delivered().count >= before + ENOUGH:
                return True
            if self.ended():
                return False
            await asyncio.sleep(0.2)
        return False

    def delivered(self) -> Delivered:
        counts: Counter[int] = Counter()
        forged = 0
        for line in self.ledger.read_bytes().splitlines():
            if line.partition(b" ")[2].startswith(SPIED):
                continue  # mallory's own stream: it may send anything there
            tau = line.split(b" ", 2)[1] if line.count(b" ") >= 2 else b"0"
            if tau.isdigit() and line.partition(b" ")[2] == payload_of(int(tau)):
                counts[int(tau)] += 1
            else:
                forged += 1
        twice = sum(count - 1 for count in counts.values())
        highest = max(counts, default=0)
        return Delivered(len(counts), highest, forged + twice, highest - len(counts))

    def usage(self) -> Usage:
        pids = [agent.pid for agent in self._agents.values() if agent.returncode is None]
        pages = [int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in pids]
        open_files = [len(list(Path(f"/proc/{pid}/fd").iterdir())) for pid in pids]
        logs = [(self.directory / f"{node}.log").stat().st_size for node in AGENTS]
        resident = max(pages, default=0) * resource.getpagesize() / 1e6
        return Usage(resident, max(open_files, default=0), max(logs))

    async def stop(self) -> None:
        """Stops the network. May be repeated."""
        for node, channel in self._channels.items():
            if self._agents[node].returncode is None:
                with contextlib.suppress(AgentLost):
                    await channel.ask(Stop("the siege is over"), ANSWER_S)
            await channel.close()
        for agent in self._agents.values():
            if agent.returncode is None:
                try:
                    async with asyncio.timeout(5):
                        await agent.wait()
                except TimeoutError:
                    agent.kill()
            await agent.wait()
        self._channels.clear()
        self._agents.clear()
