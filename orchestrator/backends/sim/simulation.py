"""A whole testbed in one virtual-time loop: mobility moves the nodes, the medium carries their frames.

Nodes stand still until the sources open, so that applications see the same movements however long routing
takes to converge and whatever else an experiment varies.
"""

import asyncio
import random
from collections.abc import Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from node_agent.agent.agent import Agent
from node_agent.agent.config import AgentConfig, check, watched_hosts
from node_agent.extensions.failures import Failures
from node_agent.linkstate.base import LinkState
from node_agent.linkstate.registry import open_link_state
from node_agent.linkstate.source import Downstream
from node_agent.model.telemetry import KILLED
from node_agent.ports.virtual.host import VirtualHost
from node_agent.ports.virtual.loop import VirtualLoop
from node_agent.ports.virtual.port import VirtualPort
from node_agent.ports.virtual.segment import StreamConfig
from node_agent.telemetry.metrics import Sample
from node_agent.telemetry.segment_log import SegmentLog
from node_agent.transport.keys import KEY_SIZE
from orchestrator.backends.agent_settings import agent_config
from orchestrator.backends.fault_injector import ActiveFaults, inject_faults
from orchestrator.backends.readiness import Settling, shortfalls
from orchestrator.backends.sim.air import Moment, make_air
from orchestrator.mobility.generate import generate_trace
from orchestrator.planning.planned import PlannedRun
from orchestrator.radio.changes import UNCHANGED, AirChanges
from orchestrator.radio.truth import Links, TruthRecorder
from orchestrator.runs.backend import NodeOutcome, Status
from orchestrator.runs.events import EventLog
from orchestrator.runs.run_directory import RunDirectory
from orchestrator.services.costs import other_link_state
from orchestrator.services.registry import routing_service
from orchestrator.services.virtual import Joined, VirtualNetwork
from orchestrator.spec.routing import OWN_READER

TICK_NS = 100_000_000
SAMPLE_TICKS = 10
FORESEEN_TICKS = 10
LOOK_NS = 500_000_000
NOT_TOLD = "no costs from the routing layer"
# Short buffers, as in the paper's prototype: a tuple inside a socket cannot be switched any more.
# Retries find a repaired path within a second, well before the connection is given up.
STREAMS = StreamConfig(send_buffer=16 * 1024, receive_buffer=64 * 1024, max_rto_ns=1_000_000_000)


class Simulation:
    """One simulated run. Virtual time passes only inside calls."""

    def __init__(self, run: PlannedRun, run_id: str, directory: Path) -> None:
        self._run = run
        self._experiment = experiment = run.experiment
        self._run_id = run_id
        self._directory = directory
        self._loop = VirtualLoop()
        asyncio.set_event_loop(self._loop)
        topology = experiment.topology
        # Mobility does not depend on k or placement, so that comparisons of them are paired.
        seconds = experiment.warmup + experiment.duration
        self._trace = generate_trace(topology, experiment.seed, seconds)
        self._air = make_air(topology, self._loop, self._trace.at(0.0), experiment.seed, seconds)
        self._hosts = topology.addresses()
        node_at = {host: node for node, host in self._hosts.items()}
        network = VirtualNetwork(node_at, experiment.seed, self._loop.now_ns, self._air.radio_of)
        self._routing = routing_service(experiment.routing).in_virtual_time(network)
        self._recorder = TruthRecorder(directory / "radio")
        self._secret = random.Random(f"key/{experiment.seed}").randbytes(KEY_SIZE)
        self.settled_s: float | None = None
        """How long costs took to settle, if that was waited for and they did."""
        self._ticks = 0
        self._moving_since_ns: int | None = None
        self._links: Links = {}
        self._agents: dict[str, Agent] = {}
        self._stacks: dict[str, tuple[VirtualHost, Joined]] = {}
        self._failures = {node: Failures() for node in self._hosts}
        self._readers: list[AbstractAsyncContextManager[LinkState]] = []
        self._crashed: dict[str, None] = {}
        self._changes = UNCHANGED
        self._ahead: dict[int, Moment] = {}  # where nodes will be at the next ticks
        self._faults: asyncio.Task[None] | None = None

    def now_ns(self) -> int:
        return self._loop.now_ns()

    def up(self) -> tuple[NodeOutcome, ...]:
        self._tick()
        for node, host in self._hosts.items():
            self._build_node(node, host)
        self._loop.run_until_complete(self._start())
        return self.outcomes()

    def converge(self) -> tuple[NodeOutcome, ...]:
        """Waits, within a bound of virtual time, until every agent knows the routes that exist."""
        limit_ns = self.now_ns() + round(self._experiment.timeouts.converge * 1e9)
        waiting = dict.fromkeys(self._agents, NOT_TOLD)
        while waiting and self.now_ns() < limit_ns:
            self.advance(LOOK_NS)
            # While the first one is not ready, the others need not be asked.
            if self.now_ns() >= limit_ns or not self._unready([next(iter(waiting))]):
                waiting = self._unready(waiting)
        if (share := self._experiment.converge.settled) is not None and not waiting:
            self.settled_s = self._settle(share, limit_ns)
        return tuple(
            outcome
            if outcome.status is not Status.OK or outcome.node not in waiting
            else NodeOutcome(outcome.node, Status.FAILED, waiting[outcome.node])
            for outcome in self.outcomes()
        )

    def _settle(self, share: float, limit_ns: int) -> float | None:
        """Waits for costs to settle. Returns how long that took; None if they did not."""
        settling, began_ns = Settling(share), self.now_ns()
        while not settling.settled(self.now_ns() / 1e9, self._loop.run_until_complete(_costs(self._agents))):
            if self.now_ns() >= limit_ns:
                return None
            self.advance(LOOK_NS)
        return (self.now_ns() - began_ns) / 1e9

    def _unready(self, waiting: Iterable[str]) -> dict[str, str]:
        """Returns the nodes that do not know enough routes yet, and why."""
        agents = {node: self._agents[node] for node in waiting}
        reaches = self._loop.run_until_complete(_asked(agents))
        short = shortfalls(reaches, self._links, self._experiment.routing.ready_share)
        return {node: short.get(node, NOT_TOLD) for node in agents if node not in reaches or node in short}

    def open_sources(self) -> None:
        """Opens the sources; the first call lets the nodes begin to move. May be repeated."""
        if self._moving_since_ns is None:
            self._moving_since_ns = self.now_ns()
            if steps := self._run.faults:
                active = ActiveFaults(self, self._run.apps, EventLog(RunDirectory(self._directory).events))
                faults = inject_faults(steps, self._experiment.warmup, active)
                self._faults = self._loop.create_task(faults, name="faults")
        self._loop.call_soon(self._open_sources)

    def advance(self, length_ns: int) -> None:
        self._loop.run_until_ns(self.now_ns() + length_ns)
        if self._faults is not None and self._faults.done():
            self._faults.result()

    async def crash(self, node: str) -> None:
        """Kills the agent in effect: closes its connections as a kernel would, and drops its state."""
        agent = self._agents[node]
        if agent.failure is None:
            self._crashed[node] = None
            await agent.stop(KILLED)

    async def restart(self, node: str) -> None:
        if node in self._crashed:
            del self._crashed[node]
            self._build_agent(node)
            await self._agents[node].start()

    async def change_air(self, changes: AirChanges) -> None:
        self._changes = changes
        self._ahead.clear()
        self._move(self._places(self.now_ns()))

    async def metrics(self, node: str) -> tuple[Sample, ...]:
        return await self._agents[node].metrics() if node not in self._crashed else ()

    def stop(self) -> tuple[NodeOutcome, ...]:
        self._loop.run_until_complete(self._stop())
        self._recorder.deliveries(self.now_ns(), self._air.uses())
        self._recorder.airtimes(self.now_ns(), self._air.airtimes_ns())
        self._recorder.close()
        return self.outcomes()

    def outcomes(self) -> tuple[NodeOutcome, ...]:
        return tuple(
            NodeOutcome(node, Status.OK)
            if agent.failure is None or node in self._crashed
            else NodeOutcome(node, Status.FAILED, str(agent.failure))
            for node, agent in self._agents.items()
        )

    def _build_node(self, node: str, host: str) -> None:
        next_hop = self._routing.next_hop(node)
        stack = VirtualHost(node, host, self._loop, self._air.medium, next_hop, STREAMS)
        port = VirtualPort(stack, self._experiment.seed)
        config = self._config(node)
        watched = watched_hosts(config, check(config))
        joined = self._routing.join(stack, port, watched.all)
        if self._experiment.routing.reader != OWN_READER:
            joined = joined._replace(link_state=self._open_reader(node, port, config, Downstream(*watched)))
        self._stacks[node] = stack, joined
        self._build_agent(node, port)

    def _open_reader(
        self, node: str, port: VirtualPort, config: AgentConfig, downstream: Downstream
    ) -> LinkState:
        """Opens the link-state reader that replaces the routing daemon's own costs."""
        node_at = {host: name for name, host in self._hosts.items()}
        opened = open_link_state(
            other_link_state(self._experiment.routing),
            port,
            node_at,
            downstream,
            config.keys,
            failures=self._failures[node],
        )
        self._readers.append(opened)
        return self._loop.run_until_complete(opened.__aenter__())

    def _build_agent(self, node: str, port: VirtualPort | None = None) -> None:
        stack, joined = self._stacks[node]
        place = self._directory / "nodes" / node
        log = SegmentLog(place / "segments", self._run_id, node, self._loop.now_ns)
        if port is None:  # a later boot draws other numbers: nonces must not repeat
            seed = random.Random(f"agent/{self._experiment.seed}/{log.boot}").getrandbits(53)
            port = VirtualPort(stack, seed)
        failures = self._failures.pop(node, None)  # a later boot counts from zero
        self._agents[node] = Agent(
            self._config(node), port, joined.link_state, log, joined.overhead, place, failures=failures
        )

    def _config(self, node: str) -> AgentConfig:
        return agent_config(self._run, self._run_id, node, self._hosts, self._secret, self._run.apps)

    async def _start(self) -> None:
        for _, joined in self._stacks.values():
            if joined.daemon is not None:
                await joined.daemon.start()
        for agent in self._agents.values():
            await agent.start()

    def _open_sources(self) -> None:
        for agent in self._agents.values():
            agent.open_sources()

    async def _stop(self) -> None:
        if self._faults is not None:
            self._faults.cancel()
        await asyncio.gather(*(agent.stop("end of run") for agent in self._agents.values()))
        for reader in self._readers:
            await reader.__aexit__(None, None, None)
        for _, joined in self._stacks.values():
            if joined.daemon is not None:
                await joined.daemon.stop()

    def _tick(self) -> None:
        """Moves the nodes; records what changed, and passes the true links to what may use them."""
        now = self.now_ns()
        if self._moving_since_ns is not None and self._ticks % FORESEEN_TICKS == 0:
            ahead = [now + tick * TICK_NS for tick in range(FORESEEN_TICKS)]
            self._ahead = {at_ns: self._places(at_ns) for at_ns in ahead}
            self._air.foresee(list(self._ahead.values()), self._changes)
        places = self._ahead.pop(now, None) or self._places(now)
        # Record sent frames with the link qualities that held while they were sent.
        if self._ticks % SAMPLE_TICKS == 0:
            self._recorder.positions(now, places[0])
            self._recorder.deliveries(now, self._air.uses())
            self._recorder.airtimes(now, self._air.airtimes_ns())
        self._move(places)
        self._ticks += 1
        self._loop.call_at_ns(now + TICK_NS, self._tick)

    def _move(self, places: Moment) -> None:
        self._links = self._air.move(*places, self._changes)
        self._routing.update(self._links)
        self._recorder.links(self.now_ns(), self._links)

    def _places(self, at_ns: int) -> Moment:
        since = self._moving_since_ns
        moved_s = 0.0 if since is None else (at_ns - since) / 1e9
        return self._changes.placed(self._trace.at(moved_s)), moved_s


async def _asked(agents: Mapping[str, Agent]) -> dict[str, tuple[str, ...]]:
    """Returns, for nodes that have costs, the nodes that they have a route to."""
    reaches = {node: tuple(await agent.ways()) for node, agent in agents.items()}
    return {node: reached for node, reached in reaches.items() if agents[node].ready}


async def _costs(agents: Mapping[str, Agent]) -> dict[str, dict[str, float]]:
    """Returns what it costs nodes to reach those that they may send to."""
    ways = {node: await agent.ways() for node, agent in agents.items()}
    return {
        node: {peer: cost for peer, cost in row.items() if peer in agents[node].sends_to}
        for node, row in ways.items()
    }
