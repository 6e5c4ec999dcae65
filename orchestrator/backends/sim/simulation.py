"""A whole testbed in one virtual-time loop: mobility moves the nodes, the medium carries what agents send."""

import asyncio
from pathlib import Path

from node_agent.agent import Agent, AgentConfig, Switching
from node_agent.ports import Address
from node_agent.telemetry.segment_log import SegmentLog
from node_agent.virtual.host import VirtualHost
from node_agent.virtual.loop import VirtualLoop
from node_agent.virtual.port import VirtualPort
from node_agent.virtual.segment import StreamConfig
from orchestrator.backends.base import NodeOutcome, Status
from orchestrator.backends.sim.air import make_air
from orchestrator.backends.sim.truth import GroundTruth
from orchestrator.mobility.generate import generate_trace
from orchestrator.planning.placement import deployment_plan
from orchestrator.radio.truth import TruthRecorder
from orchestrator.spec.experiment import Experiment

TICK_NS = 100_000_000
SAMPLE_TICKS = 10
CONVERGE_LIMIT_NS = 30_000_000_000
DATA_PORT = 7400
# Short buffers, as in the paper's prototype: a tuple inside a socket can no longer be sent another way.
# A path that heals is tried again within a second, well before it is given up.
STREAMS = StreamConfig(send_buffer=16 * 1024, receive_buffer=64 * 1024, max_rto_ns=1_000_000_000)


class Simulation:
    """Everything happens inside the calls; between them virtual time stands still."""

    def __init__(self, experiment: Experiment, run_id: str, directory: Path) -> None:
        self._experiment = experiment
        self._run_id = run_id
        self._directory = directory
        self._loop = VirtualLoop()
        asyncio.set_event_loop(self._loop)
        topology = experiment.topology
        # Mobility does not depend on k or placement, so that a comparison of them is paired.
        self._trace = generate_trace(topology, experiment.seed, experiment.warmup + experiment.duration)
        self._air = make_air(topology, self._loop, self._trace.at(0.0), experiment.seed)
        self._truth = GroundTruth(self._loop.now_ns, experiment.routing.metric)
        self._recorder = TruthRecorder(directory / "radio")
        self._ticks = 0
        self._agents: dict[str, Agent] = {}

    def now_ns(self) -> int:
        return self._loop.now_ns()

    def up(self) -> tuple[NodeOutcome, ...]:
        self._tick()
        self._agents = self._build_agents()
        self._loop.run_until_complete(self._start_agents())
        return self.outcomes()

    def converge(self) -> tuple[NodeOutcome, ...]:
        """Until every agent has its costs, within a bound of virtual time."""
        while self.now_ns() < CONVERGE_LIMIT_NS and not all(a.ready for a in self._agents.values()):
            self.advance(TICK_NS)
        return tuple(
            outcome
            if self._agents[outcome.node].ready
            else NodeOutcome(outcome.node, Status.FAILED, "no costs from the routing layer")
            for outcome in self.outcomes()
        )

    def open_sources(self) -> None:
        """May be repeated."""
        self._loop.call_soon(self._open_sources)

    def advance(self, length_ns: int) -> None:
        self._loop.run_until_ns(self.now_ns() + length_ns)

    def stop(self) -> tuple[NodeOutcome, ...]:
        self._loop.run_until_complete(self._stop_agents())
        self._recorder.deliveries(self.now_ns(), self._air.uses())
        self._recorder.close()
        return self.outcomes()

    def outcomes(self) -> tuple[NodeOutcome, ...]:
        return tuple(
            NodeOutcome(node, Status.OK)
            if agent.failure is None
            else NodeOutcome(node, Status.FAILED, str(agent.failure))
            for node, agent in self._agents.items()
        )

    def _build_agents(self) -> dict[str, Agent]:
        experiment = self._experiment
        hosts = experiment.topology.addresses()
        node_at = {host: node for node, host in hosts.items()}
        plan = deployment_plan(experiment)
        switching = Switching(
            experiment.switching.policy, experiment.switching.period, experiment.switching.threshold
        )
        agents = {}
        for node, host in hosts.items():

            def next_hop(destination: str, node: str = node) -> str | None:
                return self._truth.next_hop(node, node_at[destination]) if destination in node_at else None

            stack = VirtualHost(node, host, self._loop, self._air.medium, next_hop, STREAMS)
            port = VirtualPort(stack, experiment.seed)
            log = SegmentLog(
                self._directory / "nodes" / node / "segments", self._run_id, node, self._loop.now_ns
            )
            config = AgentConfig(
                run=self._run_id,
                node=node,
                plan=plan,
                addresses={peer: Address(peer_host, DATA_PORT) for peer, peer_host in hosts.items()},
                switching=switching,
            )
            agents[node] = Agent(config, port, self._truth, log)
        return agents

    async def _start_agents(self) -> None:
        for agent in self._agents.values():
            await agent.start()

    def _open_sources(self) -> None:
        for agent in self._agents.values():
            agent.open_sources()

    async def _stop_agents(self) -> None:
        await asyncio.gather(*(agent.stop("end of run") for agent in self._agents.values()))

    def _tick(self) -> None:
        """Move the nodes; what changed on the air is told to the truth and to the record."""
        now = self.now_ns()
        positions = self._trace.at(now / 1e9)
        # What was sent is recorded with what could be expected of the links while it was.
        if self._ticks % SAMPLE_TICKS == 0:
            self._recorder.positions(now, positions)
            self._recorder.deliveries(now, self._air.uses())
        links = self._air.move(positions)
        self._truth.update(links)
        self._recorder.links(now, links)
        self._ticks += 1
        self._loop.call_at_ns(now + TICK_NS, self._tick)
