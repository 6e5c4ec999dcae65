"""The backend ``netns``: runs an agent and a routing daemon in each node's namespace, in real time."""

import asyncio
import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from node_agent.agent import process as agent_process
from node_agent.agent.control import Costs, OpenSources, Start
from node_agent.agent.process import ProcessConfig
from node_agent.model.cost_graph import CostGraph
from node_agent.model.refusals import Refusal
from node_agent.telemetry.metrics import Sample
from node_agent.transport.keys import KEY_SIZE
from orchestrator.backends.agent_channel import METRICS_S, AgentLost, notification
from orchestrator.backends.agent_settings import agent_config, process_config
from orchestrator.backends.by_hand import ByHand
from orchestrator.backends.fault_injector import FaultInjector
from orchestrator.backends.netns.agents import AgentProcess
from orchestrator.backends.netns.errors import ForkServerError
from orchestrator.backends.netns.kind import NETNS
from orchestrator.backends.netns.marks import Mark
from orchestrator.backends.netns.radio.watch import RadioWatch
from orchestrator.backends.netns.routed import RoutedNetwork
from orchestrator.backends.readiness import settled_within, unready, unready_within
from orchestrator.backends.real_time import pass_until
from orchestrator.backends.samples import SampleCheck
from orchestrator.host_load.local import HostWatch
from orchestrator.host_load.run_load import RunLoad
from orchestrator.planning.planned import PlannedRun
from orchestrator.radio.changes import AirChanges
from orchestrator.runs.backend import (
    NodeNotSeen,
    NodeOutcome,
    Outcomes,
    Progress,
    Seen,
    Status,
    with_failures,
)
from orchestrator.runs.journal import Journal
from orchestrator.runs.manifest import MOVING_FROM, SETTLED
from orchestrator.runs.run_directory import RunDirectory
from orchestrator.spec.routing import OWN_READER

HOST = "this machine"


class NetnsBackend:
    def __init__(self, run: PlannedRun, run_id: str, directory: Path, journal: Journal) -> None:
        self._run = run
        self._experiment = experiment = run.experiment
        self._directory = directory.resolve()  # agents have another working directory
        self._mark = Mark(run_id, self._directory)
        self._network = RoutedNetwork(
            experiment.topology,
            experiment.seed,
            experiment.warmup + experiment.duration,
            self._mark,
            journal,
            experiment.routing,
            self._send_costs,
            waits=True,
        )
        self._emulation = self._network.emulation
        self._moving_from_ns: int | None = None
        self._settled_s: float | None = None
        self._agents: dict[str, AgentProcess] = {}
        self._never_started: dict[str, str] = {}
        self._crashed: dict[str, None] = {}
        self._faults = FaultInjector(run, self, RunDirectory(self._directory).events)
        self._by_hand = ByHand(
            self._faults.active, experiment.topology, run.apps, NETNS.traits, self._emulation.why_unchangeable
        )
        self._costs: bytes | None = None
        self._secret = secrets.token_bytes(KEY_SIZE)
        self._watch: HostWatch | None = None
        self._load = RunLoad(self._directory, experiment, HOST)
        self._radio = RadioWatch(self._emulation.lateness)
        kinds = {name: plan.kind for name, plan in run.apps.items()}
        self._samples = SampleCheck(kinds, experiment.topology.node_names)

    def now_ns(self) -> int:
        return time.time_ns()

    def doubts(self) -> Sequence[str]:
        return (*self._emulation.doubts, *self._load.doubts())

    def refusals(self) -> Sequence[Refusal]:
        return ()

    def facts(self) -> Mapping[str, Any]:
        began = {} if self._moving_from_ns is None else {MOVING_FROM: self._moving_from_ns}
        return {**self._load.facts(), **began, SETTLED: self._settled_s}

    async def up(self, progress: Progress) -> Outcomes:
        await self._network.up([agent_process.__name__, *self._preloaded()])
        self._watch = HostWatch.start(self._directory, self._mark.environment, self._network.server.group)
        nodes = self._experiment.topology.node_names
        await asyncio.gather(*map(self._start_agent, nodes))
        await self._watch.begun()
        self._radio.start()
        return self._outcomes()

    def _preloaded(self) -> list[str]:
        """Returns what the fork server loads for all agents."""
        folder = RunDirectory(self._directory).temporary
        return [entry for plan in self._run.apps.values() for entry in plan.preload(folder)]

    async def converge(self) -> Outcomes:
        """Waits, within a bound, until every living agent knows the routes that exist; then nodes move."""
        limit, began, check = self._experiment.timeouts.converge, time.monotonic(), self._emulation.check
        waiting = await unready_within(limit, self._agents, self._unready, check)
        if (share := self._experiment.converge.settled) is not None and not waiting:
            left = limit - (time.monotonic() - began)
            self._settled_s = await settled_within(left, share, self._used_costs, check)
        self._moving_from_ns = await self._emulation.begin_moving()
        return with_failures(self._outcomes(), waiting)

    async def _unready(self, waiting: Iterable[str]) -> dict[str, str]:
        """Returns the nodes that are not ready; does not wait for failed ones."""
        nodes = [node for node in waiting if not self._failure(node)]
        reports = await asyncio.gather(*(self._agents[node].status() for node in nodes))
        asked = dict(zip(nodes, reports, strict=True))
        return unready(asked, self._emulation.links, self._experiment.routing.ready_share)

    async def _used_costs(self) -> dict[str, dict[str, float]]:
        nodes = [node for node in self._agents if not self._failure(node)]
        reports = await asyncio.gather(*(self._agents[node].status() for node in nodes))
        return {node: report.costs for node, report in zip(nodes, reports, strict=True) if report is not None}

    async def advance(self, seconds: float, progress: Progress) -> Outcomes:
        end = time.monotonic() + seconds
        begun_ns = self.now_ns()
        await asyncio.gather(*(agent.ask(OpenSources()) for agent in self._agents.values()))
        self._faults.begin()
        await pass_until(end, seconds, progress, self._check)
        self._load.flowed(begun_ns, self.now_ns())
        self._faults.check()
        progress(1.0)
        return self._outcomes()

    def _check(self) -> None:
        self._emulation.check()
        self._faults.check()

    async def crash(self, node: str) -> None:
        agent = self._agents.get(node)
        if agent is None or agent.failure:
            return  # it died by itself, which its outcome reports
        self._crashed[node] = None
        await agent.kill()
        del self._agents[node]

    async def restart(self, node: str) -> None:
        if node in self._crashed:
            del self._crashed[node]
            await self._start_agent(node)

    async def change_air(self, changes: AirChanges) -> None:
        await self._emulation.change_air(changes)

    def interventions(self) -> ByHand:
        return self._by_hand

    def seen(self) -> Seen:
        return Seen(self._outcomes(), radio=self._radio.latest)

    async def metrics(self, node: str) -> tuple[Sample, ...]:
        agent = self._agents.get(node)
        if agent is None or agent.failure:
            raise NodeNotSeen(f"no agent runs on {node} now")
        try:
            return self._samples.checked(node, await agent.metrics(METRICS_S))
        except AgentLost as error:
            raise NodeNotSeen(f"the agent of {node} reports no metrics: {error}") from error

    def remote_records(self) -> None:
        return None

    async def stop(self) -> Outcomes:
        await self._radio.close()
        await self._by_hand.close()
        await self._faults.end()
        await asyncio.gather(*(agent.stop("end of run") for agent in self._agents.values()))
        await self._network.stop()
        self._faults.check()
        return self._outcomes()

    async def collect(self, into: Path) -> Outcomes:
        """Returns the nodes' outcomes; agents and radio have written their records in place."""
        return self._outcomes()

    async def down(self) -> None:
        try:
            await self._radio.close()
            await self._by_hand.close()
            await self._faults.end()
            await asyncio.gather(*(agent.close() for agent in self._agents.values()))
            if self._watch is not None:
                await self._watch.close()
        finally:
            await self._network.down()

    def _outcomes(self) -> list[NodeOutcome]:
        nodes = dict.fromkeys((*self._agents, *self._never_started, *self._crashed))
        failures = {node: self._failure(node) for node in nodes}
        return [NodeOutcome(node, Status.FAILED if why else Status.OK, why) for node, why in failures.items()]

    def _failure(self, node: str) -> str:
        agent = self._agents.get(node) if node not in self._crashed else None
        own = agent.failure if agent is not None else self._never_started.get(node, "")
        return own or self._network.failure(node)

    async def _start_agent(self, node: str) -> None:
        place = self._directory / "nodes" / node
        place.mkdir(parents=True, exist_ok=True)
        config = place / "agent.json"
        config.touch(mode=0o600)  # it contains keys of the run
        config.write_bytes(msgspec.json.format(msgspec.json.encode(self._config(node))))
        try:
            agent = await AgentProcess.launch(
                self._network.server, node, self._emulation.namespace(node), config, place / "agent.log"
            )
        except ForkServerError as error:
            self._never_started[node] = str(error)
            return
        self._agents[node] = agent
        if self._costs is not None:
            agent.send_latest(self._costs)
        await agent.ask(Start())

    def _config(self, node: str) -> ProcessConfig:
        hosts = {peer: str(host) for peer, host in self._emulation.hosts.items()}
        run_id, apps = self._mark.run_id, self._run.apps
        agent = agent_config(self._run, run_id, node, hosts, self._secret, apps)
        place = self._directory / "nodes" / node
        return process_config(self._run, agent, hosts[node], self._network.service, place)

    def _send_costs(self, graph: CostGraph) -> None:
        if self._experiment.routing.reader != OWN_READER:
            return  # agents read costs from their routing daemons
        self._costs = notification(Costs(graph))
        for agent in self._agents.values():
            agent.send_latest(self._costs)
