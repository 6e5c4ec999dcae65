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
from node_agent.dataflow.assembly import assembler_for
from node_agent.dataflow.dispatcher import Dispatcher, Limits
from node_agent.dataflow.registry import OPERATORS, Context, OperatorKind
from node_agent.dataflow.replica import ReplicaRuntime
from node_agent.dataflow.units import Gaps
from node_agent.delivery.core import DeliveryCore
from node_agent.delivery.limits import DeliveryLimits, Overflow, Reliability
from node_agent.delivery.place import place_of
from node_agent.delivery.runtime import DeliveryRuntime, Job
from node_agent.linkstate.base import LinkState, LinkStateUnavailable
from node_agent.linkstate.node_costs import with_node_costs
from node_agent.model.cost_graph import CostGraph
from node_agent.model.decision import Rule
from node_agent.model.plan import DeploymentPlan, Replica
from node_agent.model.query import OperatorSpec
from node_agent.model.telemetry import AgentStart, AgentStop
from node_agent.model.units import Each
from node_agent.overhead import OverheadSource
from node_agent.ports import Address, Port
from node_agent.query.errors import QueryError
from node_agent.query.load import load_for
from node_agent.routing.decision import View, decide
from node_agent.routing.outlook import link_state_outlook
from node_agent.routing.policy import POLICIES
from node_agent.routing.shortest_path import distances
from node_agent.telemetry.segment_log import LogError, SegmentLog
from node_agent.transport.authentication import MIN_KEY, Credentials, Digests
from node_agent.transport.limits import LinkLimits
from node_agent.transport.link import (
    Link,
    LocalLink,
    OnLost,
    OnMessage,
    OutgoingLink,
    ignore_loss,
    ignore_message,
)
from node_agent.transport.messages import Batch, Message, Pair
from node_agent.transport.server import LinkServer

LINK_STATE_TIMEOUT = 5.0
OVERHEAD_TIMEOUT = 1.0
FIRST_LOOKS = 0.5
STOP_TIMEOUT = 10.0

Runtime = ReplicaRuntime | DeliveryRuntime


class Switching(Struct, frozen=True):
    """The rule that routes are adapted by, and the seconds between two times."""

    rule: Rule = Rule()
    period: float = 2.0


class AgentConfig(Struct, frozen=True):
    """All that an agent is told. ``addresses`` says where each node's agent listens for tuples.

    ``key`` is the run's: whoever has it is taken for an agent of the run. Never to be printed.
    ``limits`` are those of best effort, ``delivery`` those of queries that promise more.
    ``node_costs`` are added to every link that leads to the node, in units of the metric. ``cores``: on how
    many operators can compute at once.
    """

    run: str
    node: str
    plan: DeploymentPlan
    addresses: dict[str, Address]
    key: bytes
    switching: Switching = Switching()
    sample_period: float = 1.0
    overhead_period: float = 5.0
    limits: Limits = Limits()
    delivery: DeliveryLimits = DeliveryLimits(in_flight=64)
    links: LinkLimits = LinkLimits()
    cores: int = 1
    node_costs: dict[str, float] = {}

    def __repr__(self) -> str:
        return f"AgentConfig(run={self.run!r}, node={self.node!r})"


class BadConfig(ValueError):
    """The configuration names something that does not exist or cannot be used."""


class AgentFailed(Exception):
    """Something went wrong inside the agent that it cannot go on from."""


class Agent:
    """Owns the log from here on: ``stop`` closes it."""

    def __init__(
        self,
        config: AgentConfig,
        port: Port,
        link_state: LinkState,
        log: SegmentLog,
        overhead: OverheadSource | None = None,
    ) -> None:
        """``overhead``: where the node's routing daemon says what it has sent."""
        check(config)
        self.config = config
        self.failure: AgentFailed | None = None
        self._port = port
        self._link_state = link_state
        self._overhead = overhead
        self._log = log
        self._core = asyncio.Semaphore(config.cores)
        self._credentials = Credentials(config.run, config.key)
        self._digests = Digests()
        self._graph: CostGraph | None = None
        self._replicas: dict[str, Runtime] = {
            replica.id: self._build(replica) for replica in config.plan.on(config.node)
        }
        self._server = LinkServer(
            port,
            self._credentials,
            config.node,
            config.plan,
            [address.host for address in config.addresses.values()],
            config.links,
            self._digests,
            self._take,
            partial(self._fail, "incoming link"),
            self._hear,
        )
        self._tasks: list[asyncio.Task[None]] = []
        self._failed = asyncio.Event()
        self._stopping: asyncio.Task[None] | None = None

    @property
    def ready(self) -> bool:
        """Whether the network layer has given this node its costs."""
        return self._graph is not None

    async def reaches(self) -> tuple[str, ...]:
        """The other nodes that the network layer knows a way to; asked now: routes may be adapted rarely."""
        # Without a first graph the router itself is asking, and may have to wait for it.
        if self._graph is None or await self._look() is None:
            return ()
        own = self.config.node
        return tuple(node for node in distances(self._graph, own) if node != own)

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
        if self._overhead is not None:
            self._spawn("overhead", self._sample_overhead(self._overhead))

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

    def mail(self, to: str, sender: str, content: Batch | Message) -> bool:
        """To a replica of this node; False if it is on another one."""
        runtime = self._replicas.get(to)
        if not isinstance(runtime, DeliveryRuntime):
            return False
        runtime.post(sender, content)
        return True

    def open_link(
        self, pair: Pair, on_message: OnMessage = ignore_message, on_lost: OnLost = ignore_loss
    ) -> OutgoingLink:
        return OutgoingLink(
            self._port,
            self.config.addresses[self.config.plan.replica(pair.receiver).node],
            self._credentials,
            pair,
            self.config.links,
            self._digests,
            partial(self._fail, f"link to {pair.receiver}"),
            on_message,
            on_lost,
        )

    def tell(self, pair: Pair, message: Message) -> bool:
        """To the sender of an incoming link; False if there is none."""
        return self._server.tell(pair, message)

    def _build(self, replica: Replica) -> Runtime:
        query = self.config.plan.query
        spec = query.operator(replica.operator)
        kind = OPERATORS[spec.kind]
        params = msgspec.convert(spec.params, kind.params)
        context = Context(replica.id, self._port, self._core, spec)
        level = Reliability(query.reliability)
        if level is Reliability.BEST_EFFORT:
            return self._build_best_effort(replica, spec, kind, params, context)
        assembler = None if isinstance(spec.takes, Each) else assembler_for(spec, query.origins())
        limits = self.config.delivery
        core = DeliveryCore(place_of(replica, self.config.plan), level, limits, assembler)
        job = Job(replica, self.config.plan, kind, params)
        return DeliveryRuntime(job, core, context, self, self._log.append, limits.sources_wait)

    def _build_best_effort(
        self, replica: Replica, spec: OperatorSpec, kind: OperatorKind, params: Any, context: Context
    ) -> ReplicaRuntime:
        config = self.config
        make_link = partial(self._make_link, replica)
        record = self._log.append
        query = config.plan.query
        dispatchers = []
        for downstream in query.downstream(replica.operator):
            room = query.operator(downstream).buffers.get(replica.operator, config.limits.output_buffer)
            limits = msgspec.structs.replace(config.limits, output_buffer=room)
            dispatchers.append(Dispatcher(replica.id, downstream, make_link, record, limits))
        assembler = assembler_for(spec, query.origins(), Gaps())
        return ReplicaRuntime(
            replica, spec, kind, params, assembler, context, dispatchers, record, config.limits
        )

    def _make_link(self, sender: Replica, to: str) -> Link:
        receiver = self._replicas.get(to)
        if isinstance(receiver, ReplicaRuntime):
            return LocalLink(partial(receiver.receive, sender.id))
        return self.open_link(Pair(sender.id, to))

    async def _take(self, pair: Pair, batch: Batch) -> None:
        await self._replicas[pair.receiver].take(batch)

    def _hear(self, pair: Pair, message: Message) -> None:
        self._replicas[pair.receiver].hear(pair.sender, message)

    async def _adapt_routes(self) -> None:
        period = self.config.switching.period
        # Agents that start together should not all decide together for ever after.
        pause = period * self._port.random.random()
        while True:
            if (graph := await self._look()) is not None:
                self._adapt_to(graph)
            if self._graph is None:  # the routing daemon is only starting
                await self._port.sleep(min(period, FIRST_LOOKS))
                continue
            if not self._replicas:
                return  # there is nothing here to route
            await self._port.sleep(pause)
            pause = period

    async def _look(self) -> CostGraph | None:
        """None: nothing new can be told. The routes there are may still be good, and better than none."""
        try:
            async with asyncio.timeout(LINK_STATE_TIMEOUT):
                graph = await self._link_state.cost_graph()
        except (LinkStateUnavailable, TimeoutError):
            return None
        self._graph = with_node_costs(graph, self.config.node_costs)
        return self._graph

    def _adapt_to(self, graph: CostGraph) -> None:
        for runtime in self._replicas.values():
            plan, own = self.config.plan, runtime.replica
            rule = self.config.switching.rule
            outlook = link_state_outlook(graph, plan, own, rule.policy)
            view = View(plan, own, outlook, rule, runtime.waiting(), self._port.now_ns())
            route, events = decide(view, runtime.route)
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

    async def _sample_overhead(self, source: OverheadSource) -> None:
        while True:
            await self._port.sleep(self.config.overhead_period)
            await self._record_overhead(source)

    async def _record_overhead(self, source: OverheadSource) -> None:
        try:
            async with asyncio.timeout(OVERHEAD_TIMEOUT):
                counted = await source.read()
        except (LinkStateUnavailable, TimeoutError):
            return  # counters only grow: the next sample tells what this one would have
        for event in counted:
            self._log.append(event)

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
                if self._overhead is not None:
                    await self._record_overhead(self._overhead)
        except TimeoutError as error:
            self._fail("stop", error)
        try:
            self._log.append(AgentStop(reason))
            self._log.close()
        except LogError as error:
            self._fail("telemetry", error)


def check(config: AgentConfig) -> None:
    """Raises BadConfig, naming everything that is wrong."""
    problems = []
    try:
        load_for(config.plan.query)
    except QueryError as error:
        problems.append(str(error))
    problems += _plan_problems(config)
    if config.switching.rule.policy not in POLICIES:
        problems.append(f"there is no switching policy {config.switching.rule.policy!r}")
    if not (config.switching.period > 0 and config.sample_period > 0 and config.overhead_period > 0):
        problems.append("periods must be positive")
    if config.delivery.overflow is Overflow.SPILL:
        problems.append("agents have no place to spill to yet: overflow must be block or drop_oldest")
    if config.cores < 1:
        problems.append("a node has at least one core")
    if not all(0 <= cost < float("inf") for cost in config.node_costs.values()):
        problems.append("node costs cannot be negative or infinite")
    if len(config.key) < MIN_KEY:
        problems.append(f"the key has {len(config.key)} bytes, and needs {MIN_KEY}")
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
