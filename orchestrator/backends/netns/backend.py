"""The backend ``netns``: one agent in each node's namespace, on this machine's clock."""

import asyncio
import random
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from node_agent import process as agent_process
from node_agent.agent import AgentConfig, Switching
from node_agent.control import Costs, OpenSources, Start
from node_agent.model.cost_graph import CostGraph
from node_agent.ports import Address
from node_agent.process import ProcessConfig
from orchestrator.backends.agent_channel import news
from orchestrator.backends.base import NodeOutcome, Outcomes, Progress, Status
from orchestrator.backends.netns.agents import AgentProcess
from orchestrator.backends.netns.emulation import Emulation
from orchestrator.backends.netns.errors import ForkServerError
from orchestrator.backends.netns.forkclient import ForkServer
from orchestrator.backends.netns.marks import Mark
from orchestrator.lifecycle.journal import Journal
from orchestrator.planning.placement import deployment_plan
from orchestrator.spec.experiment import Experiment

DATA_PORT = 7400
CONVERGE_LIMIT_S = 30.0
POLL_S = 0.1
SETTLING_S = 60.0
"""Nodes keep moving for so long beyond the measurement: convergence takes its time, too."""


class NetnsBackend:
    def __init__(self, experiment: Experiment, run_id: str, directory: Path, journal: Journal) -> None:
        self._experiment = experiment
        self._directory = directory.resolve()  # agents live elsewhere: a relative path would mislead them
        self._journal = journal
        self._mark = Mark(run_id, self._directory)
        seconds = experiment.warmup + experiment.duration + SETTLING_S
        self._emulation = Emulation(
            experiment.topology,
            experiment.seed,
            seconds,
            self._mark,
            journal,
            experiment.routing.metric,
            self._tell_costs,
        )
        self._server: ForkServer | None = None
        self._agents: dict[str, AgentProcess] = {}
        self._never_started: dict[str, str] = {}
        self._costs: bytes | None = None

    def now_ns(self) -> int:
        return time.time_ns()

    def doubts(self) -> Sequence[str]:
        return self._emulation.doubts

    async def up(self) -> Outcomes:
        await self._emulation.up()
        intent = self._journal.intend("process", mark=self._mark.run_id, what="fork server")
        self._server = await ForkServer.start(self._mark, [agent_process.__name__])
        self._journal.done(intent)
        nodes = self._experiment.topology.node_names
        await asyncio.gather(*map(self._start_agent, nodes))
        return self._outcomes()

    async def converge(self) -> Outcomes:
        """Until every living agent has its costs, within a bound."""
        deadline = time.monotonic() + CONVERGE_LIMIT_S
        waiting = list(self._agents.values())
        while waiting and time.monotonic() < deadline:
            self._emulation.check()
            ready = await asyncio.gather(*(agent.is_ready() for agent in waiting))
            pairs = zip(waiting, ready, strict=True)
            waiting = [agent for agent, is_ready in pairs if not is_ready and not agent.failure]
            if waiting:
                await asyncio.sleep(POLL_S)
        without = {agent.node for agent in waiting}
        return [
            NodeOutcome(outcome.node, Status.FAILED, "no costs from the routing layer")
            if outcome.node in without
            else outcome
            for outcome in self._outcomes()
        ]

    async def advance(self, seconds: float, progress: Progress) -> Outcomes:
        end = time.monotonic() + seconds
        await asyncio.gather(*(agent.ask(OpenSources()) for agent in self._agents.values()))
        while (left := end - time.monotonic()) > 0:
            self._emulation.check()
            progress(1.0 - left / seconds)
            await asyncio.sleep(min(1.0, left))
        progress(1.0)
        return self._outcomes()

    async def stop(self) -> Outcomes:
        await asyncio.gather(*(agent.stop("end of run") for agent in self._agents.values()))
        await self._emulation.stop_radio()
        return self._outcomes()

    async def collect(self, into: Path) -> Outcomes:
        """Agents and radio write in place; what is left to say is how the nodes came out of it."""
        return self._outcomes()

    async def down(self) -> None:
        try:
            await asyncio.gather(*(agent.close() for agent in self._agents.values()))
            if self._server is not None:
                await self._server.close()
        finally:
            await self._emulation.down()

    def _outcomes(self) -> list[NodeOutcome]:
        lost = (NodeOutcome(node, Status.FAILED, why) for node, why in self._never_started.items())
        return [*(agent.outcome() for agent in self._agents.values()), *lost]

    async def _start_agent(self, node: str) -> None:
        assert self._server is not None
        place = self._directory / "nodes" / node
        place.mkdir(parents=True, exist_ok=True)
        config = place / "agent.json"
        config.write_bytes(msgspec.json.format(msgspec.json.encode(self._config(node))))
        try:
            agent = await AgentProcess.launch(
                self._server, node, self._emulation.namespace(node), config, place / "agent.log"
            )
        except ForkServerError as error:
            self._never_started[node] = str(error)
            return
        self._agents[node] = agent
        if self._costs is not None:
            agent.tell_latest(self._costs)
        await agent.ask(Start())

    def _config(self, node: str) -> ProcessConfig:
        experiment = self._experiment
        hosts = self._emulation.hosts
        switching = experiment.switching
        return ProcessConfig(
            agent=AgentConfig(
                run=self._mark.run_id,
                node=node,
                plan=deployment_plan(experiment),
                addresses={peer: Address(str(host), DATA_PORT) for peer, host in hosts.items()},
                switching=Switching(switching.policy, switching.period, switching.threshold),
            ),
            host=str(hosts[node]),
            segments=str(self._directory / "nodes" / node / "segments"),
            seed=random.Random(f"agent/{experiment.seed}/{node}").getrandbits(53),
        )

    def _tell_costs(self, graph: CostGraph) -> None:
        self._costs = news(Costs(graph))
        for agent in self._agents.values():
            agent.tell_latest(self._costs)
