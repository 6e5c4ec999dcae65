"""One node's agent: its replicas, the links between them and others', the router, and the telemetry.

The owner starts it, opens the sources when the whole testbed is ready, and stops it. Whatever fails
unexpectedly inside stops the agent and is kept as ``failure``.
"""

import asyncio
from collections.abc import Coroutine, Iterator
from functools import partial
from typing import Any

import msgspec
from msgspec import Struct

from node_agent import __version__
from node_agent.dataflow.dispatcher import Dispatcher, Limits
from node_agent.dataflow.registry import OPERATORS, Context
from node_agent.dataflow.replica import ReplicaRuntime
from node_agent.linkstate.base import LinkState, LinkStateUnavailable
from node_agent.model.cost_graph import CostGraph
from node_agent.model.plan import DeploymentPlan, Replica
from node_agent.model.telemetry import AgentStart, AgentStop
from node_agent.model.tuples import StreamTuple
from node_agent.ports import Address, Port
from node_agent.routing.decision import decide
from node_agent.routing.policy import POLICIES, View
from node_agent.telemetry.segment_log import LogError, SegmentLog
from node_agent.transport.framing import PROTOCOL_VERSION, Hello
from node_agent.transport.link import Link, LocalLink, OutgoingLink
from node_agent.transport.server import LinkServer

LINK_STATE_TIMEOUT = 5.0
STOP_TIMEOUT = 10.0


class Switching(Struct, frozen=True):
    """``period`` in seconds; ``threshold`` in units of the cost metric."""

    policy: str = "shortest_path"
    period: float = 2.0
    threshold: float = 0.0


class AgentConfig(Struct, frozen=True):
    """All that an agent is told. ``addresses`` says where each node's agent listens for tuples."""

    run: str
    node: str
    plan: DeploymentPlan
    addresses: dict[str, Address]
    switching: Switching = Switching()
    sample_period: float = 1.0
    limits: Limits = Limits()


class BadConfig(ValueError):
    """The configuration names something that does not exist or cannot be used."""


class AgentFailed(Exception):
    """Something went wrong inside the agent that it cannot go on from."""


class Agent:
    """Owns the log from here on: ``stop`` closes it."""

    def __init__(self, config: AgentConfig, port: Port, link_state: LinkState, log: SegmentLog) -> None:
        check(config)
        self.config = config
        self.failure: AgentFailed | None = None
        self._port = port
        self._link_state = link_state
        self._log = log
        self._core = asyncio.Lock()
        self._policy = POLICIES[config.switching.policy]
        self._graph: CostGraph | None = None
        self._replicas = {replica.id: self._build(replica) for replica in config.plan.on(config.node)}
        self._server = LinkServer(
            port, config.run, config.node, config.plan, self._take, partial(self._fail, "incoming link")
        )
        self._tasks: list[asyncio.Task[None]] = []
        self._failed = asyncio.Event()
        self._stopping: asyncio.Task[None] | None = None

    @property
    def ready(self) -> bool:
        """Whether the network layer has given this node its costs."""
        return self._graph is not None

    @property
    def rejected(self) -> dict[str, int]:
        """Incoming connections that were closed for what they sent, by reason."""
        return dict(self._server.rejected)

    async def start(self) -> None:
        """Listen, run the replicas and the router; sources stay shut. If it fails, the agent is stopped."""
        try:
            self._log.append(AgentStart(__version__, self._port.clock_name, tuple(self._replicas)))
            await self._server.open(self.config.addresses[self.config.node].port)
        except Exception as error:
            await self.stop(f"could not start: {error}")
            raise
        for runtime in self._replicas.values():
            for name, run in runtime.runs().items():
                self._spawn(name, run)
        self._spawn("router", self._adapt_routes())
        self._spawn("sampler", self._sample())

    def open_sources(self) -> None:
        for runtime in self._replicas.values():
            runtime.open_source()

    async def stop(self, reason: str) -> None:
        """End everything the agent began, then close the log. May be repeated: the first reason counts.

        Does not raise for what went wrong while stopping; that is in ``failure``.
        """
        self._begin_stop(reason)
        if self._stopping is not None:
            await asyncio.shield(self._stopping)

    async def wait_failed(self) -> AgentFailed:
        """Return when, and only if, something has failed; the agent is stopping or stopped then."""
        while self.failure is None:
            await self._failed.wait()
        return self.failure

    def _build(self, replica: Replica) -> ReplicaRuntime:
        config = self.config
        spec = config.plan.query.operator(replica.operator)
        kind = OPERATORS[spec.kind]
        make_link = partial(self._make_link, replica)
        record = self._log.append
        dispatchers = [
            Dispatcher(replica.id, downstream, make_link, record, config.limits)
            for downstream in config.plan.query.downstream(replica.operator)
        ]
        params = msgspec.convert(spec.params, kind.params)
        context = Context(replica.id, self._port, self._core)
        return ReplicaRuntime(replica, kind, params, context, dispatchers, record, config.limits)

    def _make_link(self, sender: Replica, to: str) -> Link:
        receiver = self.config.plan.replica(to)
        if receiver.node == self.config.node:
            return LocalLink(partial(self._replicas[to].receive, sender.id))
        hello = Hello(PROTOCOL_VERSION, self.config.run, sender.id, to)
        return OutgoingLink(self._port, self.config.addresses[receiver.node], hello)

    async def _take(self, hello: Hello, item: StreamTuple) -> None:
        await self._replicas[hello.receiver].receive(hello.sender, item)

    async def _adapt_routes(self) -> None:
        period = self.config.switching.period
        # Agents that start together should not all decide together for ever after.
        pause = period * self._port.random.random()
        while True:
            try:
                async with asyncio.timeout(LINK_STATE_TIMEOUT):
                    self._graph = await self._link_state.cost_graph()
            except (LinkStateUnavailable, TimeoutError):
                pass  # the routes there are may still be good, and better than none
            else:
                self._adapt_to(self._graph)
            await self._port.sleep(pause)
            pause = period

    def _adapt_to(self, graph: CostGraph) -> None:
        for runtime in self._replicas.values():
            view = View(graph, self.config.plan, runtime.replica, self.config.switching.threshold)
            route, events = decide(self._policy, view, runtime.route)
            for event in events:
                self._log.append(event)
            runtime.steer(route)

    async def _sample(self) -> None:
        while True:
            await self._port.sleep(self.config.sample_period)
            for runtime in self._replicas.values():
                for sample in runtime.samples():
                    self._log.append(sample)
            self._log.flush()

    def _spawn(self, name: str, run: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(run, name=name)
        task.add_done_callback(self._task_ended)
        self._tasks.append(task)

    def _task_ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._fail(task.get_name(), error)

    def _fail(self, where: str, error: BaseException) -> None:
        if self.failure is None:
            self.failure = AgentFailed(f"{where}: {type(error).__name__}: {error}")
            self.failure.__cause__ = error
            self._failed.set()
        self._begin_stop(f"failed: {self.failure}")

    def _begin_stop(self, reason: str) -> None:
        if self._stopping is None:
            self._stopping = asyncio.create_task(self._stop(reason), name=f"stop {self.config.node}")

    async def _stop(self, reason: str) -> None:
        try:
            async with asyncio.timeout(STOP_TIMEOUT):
                for task in self._tasks:
                    task.cancel()
                if self._tasks:
                    await asyncio.wait(self._tasks)
                await self._server.close()
                for runtime in self._replicas.values():
                    await runtime.close()
        except TimeoutError as error:
            self._fail("stop", error)
        try:
            self._log.append(AgentStop(reason))
            self._log.close()
        except LogError as error:
            self._fail("telemetry", error)


def check(config: AgentConfig) -> None:
    """Raises BadConfig, naming everything that is wrong."""
    problems = [*_plan_problems(config)]
    if config.switching.policy not in POLICIES:
        problems.append(f"there is no switching policy {config.switching.policy!r}")
    if not (config.switching.period > 0 and config.sample_period > 0):
        problems.append("periods must be positive")
    if problems:
        raise BadConfig(f"agent {config.node} cannot run: {'; '.join(problems)}")


def _plan_problems(config: AgentConfig) -> Iterator[str]:
    for node in dict.fromkeys((config.node, *(r.node for r in config.plan.replicas))):
        if node not in config.addresses:
            yield f"node {node} has no address"
    for operator in dict.fromkeys(r.operator for r in config.plan.on(config.node)):
        spec = config.plan.query.operator(operator)
        kind = OPERATORS.get(spec.kind)
        if kind is None:
            yield f"operator {operator} is of the unknown kind {spec.kind!r}"
            continue
        try:
            msgspec.convert(spec.params, kind.params)
        except msgspec.ValidationError as error:
            yield f"operator {operator}: {error}"
