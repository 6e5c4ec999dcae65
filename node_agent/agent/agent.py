"""One node's agent: its replicas, the links between them and others', the router, and the telemetry.

The owner starts it, opens the sources when the whole testbed is ready, and stops it. Whatever fails
unexpectedly inside stops the agent and is kept as ``failure``.
"""

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from node_agent import __version__
from node_agent.agent.config import AgentConfig, BadConfig, check
from node_agent.apps.dataflow.best_effort.dispatcher import Dispatcher
from node_agent.apps.dataflow.best_effort.replica import ReplicaRuntime
from node_agent.apps.dataflow.delivery.core import DeliveryCore
from node_agent.apps.dataflow.delivery.limits import Overflow, Reliability
from node_agent.apps.dataflow.delivery.place import place_of
from node_agent.apps.dataflow.delivery.runtime import DeliveryRuntime, Job
from node_agent.apps.dataflow.delivery.spill import SpillFile
from node_agent.apps.dataflow.model.plan import Replica
from node_agent.apps.dataflow.model.query import OperatorSpec
from node_agent.apps.dataflow.model.tuples import StreamTuple
from node_agent.apps.dataflow.model.units import Each
from node_agent.apps.dataflow.operators.registry import OPERATORS, Context, OperatorKind, OperatorUnusable
from node_agent.apps.dataflow.switching.exchange import is_needed
from node_agent.apps.dataflow.switching.exchanges import Exchanges
from node_agent.apps.dataflow.switching.router import Router
from node_agent.apps.dataflow.windows.assembly import assembler_for
from node_agent.apps.dataflow.windows.units import Gaps
from node_agent.extensions.failures import Failures
from node_agent.linkstate.base import LinkState, LinkStateUnavailable
from node_agent.linkstate.overhead import OverheadSource
from node_agent.model.refusals import Refusals
from node_agent.model.telemetry import (
    AgentStart,
    AgentStop,
    ExtensionFailed,
    LinkLost,
    RefusalCount,
    SpillSample,
)
from node_agent.ports import Port
from node_agent.telemetry.segment_log import LogError, SegmentLog
from node_agent.transport.authentication import Credentials, Digests
from node_agent.transport.framing import Impossible
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
from node_agent.transport.notices import Notices
from node_agent.transport.server import LinkServer

OVERHEAD_TIMEOUT = 1.0
STOP_TIMEOUT = 10.0

Runtime = ReplicaRuntime | DeliveryRuntime


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
        directory: Path | None = None,
        refusals: Refusals | None = None,
        failures: Failures | None = None,
    ) -> None:
        """``overhead``: where the node's routing daemon says what it has sent. ``directory``: the node's own,
        for files of its operators. ``refusals``: what ``link_state`` refused; ``failures``: of an
        extension that it is. Raises BadConfig."""
        check(config)
        self.config = config
        self.failure: AgentFailed | None = None
        self._port = port
        self._log = log
        self._directory = directory
        self._spill = SpillFile(log.directory, config.delivery.spill_bytes)
        self._spilled: SpillSample | None = None
        self._told_refusals: dict[tuple[str, str, str], int] = {}
        self._core = asyncio.Semaphore(config.cores)
        self.refusals = refusals or Refusals()
        """What this agent refused, and from whom."""
        self.refusals.know([*config.addresses, *(address.host for address in config.addresses.values())])
        self._failures = failures or Failures()
        self._credentials = Credentials(config.run, config.node, config.keys)
        self._digests = Digests()
        self._replicas: dict[str, Runtime] = {
            replica.id: self._build_usable(replica) for replica in config.plan.on(config.node)
        }
        self._notices = self._make_notices()
        self._overheads = [source for source in (overhead, self._notices) if source is not None]
        exchanges = Exchanges(config, log.boot, self._notices.send) if self._notices is not None else None
        self._router = Router(
            config,
            port,
            link_state,
            tuple(self._replicas.values()),
            log.append,
            exchanges,
            self._queue,
            self._failures,
        )
        self._server = LinkServer(
            port,
            self._credentials,
            config.plan,
            {node: address.host for node, address in config.addresses.items() if node != config.node},
            config.links,
            self._digests,
            self.refusals,
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
        return self._router.ready

    async def reaches(self) -> tuple[str, ...]:
        """The other nodes that the network layer knows a way to."""
        return await self._router.reaches()

    async def start(self) -> None:
        """Listen, run the replicas and the router; sources stay shut. If it fails, the agent is stopped."""
        try:
            self._log.append(AgentStart(__version__, self._port.clock_name, tuple(self._replicas)))
            port = self.config.addresses[self.config.node].port
            await self._server.open(port)
            if self._notices is not None:
                await self._notices.open(port)
        except Exception as error:
            await self.stop(f"could not start: {error}")
            raise
        for runtime in self._replicas.values():
            for name, run in runtime.runs().items():
                self._spawn(name, run)
        self._spawn("router", self._router.run())
        self._spawn("exchange", self._router.exchange())
        self._spawn("sampler", self._sample())
        if self._overheads:
            self._spawn("overhead", self._sample_overhead())

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
        def lost(pair: Pair, items: Sequence[StreamTuple], reason: str) -> None:
            self._log.append(LinkLost(pair.sender, pair.receiver, reason))
            on_lost(pair, items, reason)

        node = self.config.plan.replica(pair.receiver).node
        return OutgoingLink(
            self._port,
            self.config.addresses[node],
            self._credentials.to(node, "connection"),
            pair,
            self.config.links,
            self._digests,
            self.refusals,
            partial(self._fail, f"link to {pair.receiver}"),
            on_message,
            lost,
            lambda: self._router.reconsider(),
        )

    def tell(self, pair: Pair, message: Message) -> bool:
        """To the sender of an incoming link; False if there is none."""
        return self._server.tell(pair, message)

    def _build_usable(self, replica: Replica) -> Runtime:
        try:
            return self._build(replica)
        except OperatorUnusable as error:
            problem = f"agent {self.config.node} cannot run: operator {replica.operator}: {error}"
            raise BadConfig(problem) from error

    def _build(self, replica: Replica) -> Runtime:
        query = self.config.plan.query
        spec = query.operator(replica.operator)
        kind = OPERATORS[spec.kind]
        params = msgspec.convert(spec.params, kind.params)
        context = Context(replica.id, self._port, self._core, spec, self._log.append, self._directory)
        level = Reliability(query.reliability)
        if level is Reliability.BEST_EFFORT:
            return self._build_best_effort(replica, spec, kind, params, context)
        assembler = None if isinstance(spec.takes, Each) else assembler_for(spec, query.origins())
        limits = self.config.delivery
        spill = self._spill if limits.overflow is Overflow.SPILL else None
        buffers = {
            name: msgspec.structs.replace(limits, items=room)
            for name in query.downstream(replica.operator)
            if (room := query.operator(name).buffers.get(replica.operator)) is not None
        }
        core = DeliveryCore(place_of(replica, self.config.plan), level, limits, assembler, spill, buffers)
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
        each = isinstance(spec.takes, Each)
        assembler = None if each else assembler_for(spec, query.origins(), Gaps())
        return ReplicaRuntime(
            replica,
            spec,
            kind,
            params,
            assembler,
            context,
            dispatchers,
            self.open_link,
            record,
            config.limits,
        )

    def _make_notices(self) -> Notices | None:
        """None if replicas have nothing to tell each other: then not a byte is spent on it."""
        config = self.config
        if not is_needed(config.plan.query, config.switching.rule.policy, config.switching.mode):
            return None
        node_of = {replica.id: replica.node for replica in config.plan.replicas}
        return Notices(
            self._port,
            self._credentials,
            config.addresses,
            node_of,
            self.refusals,
            lambda notice: self._router.hear(notice),
        )

    def _queue(self, replica: str) -> int:
        return self._replicas[replica].queued() + self._server.waiting(replica)

    def _make_link(self, sender: Replica, to: str, on_lost: OnLost) -> Link:
        receiver = self._replicas.get(to)
        if isinstance(receiver, ReplicaRuntime):
            return LocalLink(partial(receiver.receive, sender.id))
        return self.open_link(Pair(sender.id, to), on_lost=on_lost)

    async def _take(self, pair: Pair, batch: Batch) -> None:
        via = pair.sender if pair.sender != batch.sender else ""
        runtime = self._replicas[pair.receiver]
        if runtime.overrun(batch):
            raise Impossible(f"{pair.sender} sends more than it may have")
        await runtime.take(batch, via)

    def _hear(self, pair: Pair, message: Message) -> None:
        self._replicas[pair.receiver].hear(pair.sender, message)

    async def _sample(self) -> None:
        while True:
            await self._port.sleep(self.config.sample_period)
            for runtime in self._replicas.values():
                for sample in runtime.samples():
                    self._log.append(sample)
            self._sample_counts()
            self._log.flush()

    def _sample_counts(self, last: bool = False) -> None:
        """What seldom changes is recorded when it has; what others can make change, when it has doubled.

        ``last``: there will be no other time.
        """
        spill = self._spill
        if spill.size or spill.refused or self._spilled is not None:
            sample = SpillSample(spill.size, spill.refused, spill.refusal)
            if sample != self._spilled:
                self._spilled = sample
                self._log.append(sample)
        for failed in self._failures.to_record(last):
            self._log.append(ExtensionFailed(**asdict(failed)))
        for each in self.refusals:
            what, source, reason, count = each.what, each.source, each.reason, each.count
            told = self._told_refusals.get((what, source, reason), 0)
            if count >= 2 * told or (last and count > told):
                self._told_refusals[what, source, reason] = count
                self._log.append(RefusalCount(what, source, reason, count))

    async def _sample_overhead(self) -> None:
        while True:
            await self._port.sleep(self.config.overhead_period)
            await self._record_overhead()

    async def _record_overhead(self) -> None:
        for source in self._overheads:
            try:
                async with asyncio.timeout(OVERHEAD_TIMEOUT):
                    counted = await source.read()
            except (LinkStateUnavailable, TimeoutError):
                continue  # counters only grow: the next sample tells what this one would have
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
                if self._notices is not None:
                    self._notices.close()
                await self._record_overhead()
        except TimeoutError as error:
            self._fail("stop", error)
        self._spill.close()
        try:
            self._sample_counts(last=True)
            self._log.append(AgentStop(reason))
            self._log.close()
        except LogError as error:
            self._fail("telemetry", error)
