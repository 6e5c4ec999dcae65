"""The runtime of a replica whose query promises delivery: a core, the operator, and channels to other nodes.

It carries out what the core wants. Replicas on the same node pass items and messages directly, others send
them over connections. Work for the operator is queued; a sender that exceeds the queue is disconnected.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from itertools import repeat
from math import inf
from typing import Any, NamedTuple, Protocol, TypeVar, cast

from node_agent.apps.dataflow.delivery.ack_batcher import AckBatcher
from node_agent.apps.dataflow.delivery.channel import Channel
from node_agent.apps.dataflow.delivery.core import DeliveryCore
from node_agent.apps.dataflow.delivery.effects import (
    Acknowledge,
    Ask,
    Drop,
    Effect,
    Forward,
    Process,
    ProcessUnit,
    PushBack,
    Resume,
    Send,
    Settle,
)
from node_agent.apps.dataflow.delivery.emission import Payloads
from node_agent.apps.dataflow.delivery.handover import Handover, HandoverCallbacks
from node_agent.apps.dataflow.delivery.intake import Captured, Intake
from node_agent.apps.dataflow.delivery.limits import MOST_RANGES
from node_agent.apps.dataflow.delivery.positions import Positions
from node_agent.apps.dataflow.delivery.tuple_recorder import TupleRecorder
from node_agent.apps.dataflow.events import QueueSample
from node_agent.apps.dataflow.model.plan import DeploymentPlan, Replica, operator_of
from node_agent.apps.dataflow.model.tuples import StreamTuple, weight_of
from node_agent.apps.dataflow.operators.one_by_one import OneByOne
from node_agent.apps.dataflow.operators.pace import saturates
from node_agent.apps.dataflow.operators.processing import GivenUp, process
from node_agent.apps.dataflow.operators.registry import Context, Operator, OperatorKind, Source
from node_agent.apps.dataflow.switching.route import Route
from node_agent.apps.dataflow.windows.units import Unit
from node_agent.apps.dataflow.wire import messages
from node_agent.apps.dataflow.wire.codec import OnLost, OnMessage, TupleConnection
from node_agent.apps.dataflow.wire.messages import Batch, Message
from node_agent.model.telemetry import Event
from node_agent.transport.messages import Pair

T = TypeVar("T")

ACK_DELAY = 0.002
"""Seconds for which acknowledgements are collected."""
GRAIN = 1e-6
"""Clocks count in steps: without this, a timer that fires early by less than a step would be set again for
ever.
"""


class Connector(Protocol):
    """Reaches other replicas, on this node and on others."""

    def send_local(self, to: str, sender: str, content: Batch | Message) -> bool:
        """Gives ``content`` to replica ``to`` of this node. Returns False if it is on another node."""
        ...

    def open_connection(self, pair: Pair, on_message: OnMessage, on_lost: OnLost) -> TupleConnection: ...

    def answer(self, pair: Pair, message: Message) -> bool:
        """Sends a message to the sender of an incoming connection. Returns False if there is no
        connection.
        """
        ...


class Job(NamedTuple):
    """What to run; ``params`` must be an instance of ``kind.params``.

    ``most_open``: a source that saturates waits while so many of its tuples have not reached the sinks.
    """

    replica: Replica
    plan: DeploymentPlan
    kind: OperatorKind
    params: Any
    most_open: float = inf


class DeliveryRuntime:
    def __init__(
        self,
        job: Job,
        core: DeliveryCore,
        context: Context,
        connector: Connector,
        record: Callable[[Event], None],
        sources_wait: bool,
    ) -> None:
        plan, query = job.plan, job.plan.query
        self.replica = job.replica
        self.route = Route()
        self._id = job.replica.id
        self._role = job.kind.role
        self._spec = query.operator(job.replica.operator)
        self._made = job.kind.factory(job.params, context)
        context.outlet = self
        self._core = core
        self._context = context
        self._connector = connector
        self._recorder = TupleRecorder(job.replica.id, record)
        self._sources_wait = sources_wait
        self._saturates = saturates(job.params)
        self._most_open = job.most_open
        self._stirred = asyncio.Event()
        self._origins = query.origins()
        self._downstreams = {r.id: d for d in core.neighbours.downstreams for r in plan.of(d)}
        self._channels = {
            r.id: self._open_channel(r.id)
            for d in core.neighbours.downstreams
            for r in plan.of(d)
            if r.node != job.replica.node
        }
        self._local_messages: deque[tuple[str, Batch | Message]] = deque()
        self._has_local_messages = asyncio.Event()
        self._work: deque[tuple[Process | ProcessUnit, int]] = deque()
        self._work_bytes = 0
        streams = sum(len(plan.of(name)) * len(self._origins[name]) for name in core.neighbours.upstreams)
        self._most_work = core.most_bytes * streams
        self._has_work = asyncio.Event()
        self._has_room = asyncio.Event()
        self._has_room.set()
        self._opened = asyncio.Event()
        self._in_hand: list[Captured] = []
        self._acks = AckBatcher()
        self._has_acks = asyncio.Event()
        self._tick_at = inf
        self._sooner = asyncio.Event()
        self._absorbed: dict[str, Positions] = {}
        # What is lost on the way to a sibling is sent to it again by the replicas upstream.
        callbacks = HandoverCallbacks(self._sent, lambda items, reason: None, lambda parts: None)
        self._handover = Handover(self._id, connector.send_local, connector.open_connection, callbacks)
        self._assembling_sibling: str | None = None
        self._handed: dict[tuple[str, str], Positions] = {}

    def open_source(self) -> None:
        """Lets the source emit; has no effect on other operators."""
        self._opened.set()

    def steer(self, route: Route) -> None:
        self.route = route
        in_use = [to for hop in route.hops.values() if hop is not None for to in hop.replicas()]
        silent = self.silent()
        seeking = any(to in silent for to in in_use)  # nobody who could be used answers
        for to, channel in self._channels.items():
            channel.want(to in in_use)
            if seeking and to in silent and to not in in_use:
                channel.hurry()
        for downstream in self._core.neighbours.downstreams:
            self._do(self._core.steer(downstream, route.hops.get(downstream), self._now()))

    def waiting(self) -> dict[str, int]:
        """Returns by downstream operator how many tuples wait here."""
        return self._core.waiting()

    def has_room(self) -> bool:
        """Whether what is emitted now can be kept until it is delivered."""
        return self._has_room.is_set()

    def silent(self) -> tuple[str, ...]:
        """Returns the downstream replicas that do not answer."""
        return tuple(to for to, channel in self._channels.items() if not channel.answers)

    def queued(self) -> int:
        """Returns how many tuples wait here, on their way in or out."""
        return self._waiting_to_be_processed() + sum(self.waiting().values())

    def assemble_at(self, sibling: str | None) -> None:
        """Hands over what incomplete units hold to ``sibling``, which assembles units from now on; None: this
        replica.
        """
        if sibling != self._assembling_sibling:
            self._assembling_sibling = sibling
            self._handed.clear()
        self._hand_over()

    def overrun(self, batch: Batch) -> bool:
        """Whether the sender of ``batch`` has sent more than it can if it keeps its limits."""
        upstream = operator_of(batch.sender)
        return self._work_bytes > self._most_work or self._core.overrun(batch.sender, upstream)

    async def take(self, batch: Batch, via: str = "") -> None:
        """Takes a batch of one of this replica's inputs. ``via``: the sibling that passed it on."""
        upstream, items = operator_of(batch.sender), batch.items
        streams = self._streams_of(upstream)
        self._recorder.received(via or batch.sender, items)
        if via:  # do not hand back to the sibling what it sent
            for item in items:
                self._news_to_sibling(batch.sender, item)
        if self._role == "sink":
            self._record_holes(upstream, items)
        if items:
            floors = _of_streams(streams, batch.floors)
            self._do(self._core.receive(batch.sender, upstream, items, floors, self._now()))
            for (sender, origin), handed in self._handed.items():
                handed.add(1, self._core.floor(operator_of(sender), origin))  # do not hand over what is done
            self._hand_over()

    def receive_message(self, sender: str, message: Message) -> None:
        """Handles what another replica, up or down the stream, reports. Ignores what it cannot know."""
        now, core, operator = self._now(), self._core, operator_of(sender)
        match message:
            case messages.Acknowledgement(done, taken) if sender in self._downstreams:
                own = self._origins[self.replica.operator]
                done, taken = _of_streams(own, done), _of_streams(own, taken)
                self._do(core.acknowledged(sender, operator, done, taken, now))
            case messages.Ask() if sender in self._downstreams:
                self._do(core.asked(sender, operator, now))
            case messages.Settled(floors, ends):
                streams = self._streams_of(operator)
                known = [end for end in ends if end.origin in streams]
                self._do(core.settled(operator, _of_streams(streams, floors), known, now))

    def receive_local(self, sender: str, content: Batch | Message) -> None:
        """Queues what a replica of the same node sends, so that it does not wait."""
        self._local_messages.append((sender, content))
        self._has_local_messages.set()

    def runs(self) -> dict[str, Coroutine[Any, Any, None]]:
        """Returns by name what must run for this replica to work; the owner makes tasks of it."""
        main = self._emit if self._role == "source" else self._operate
        channels = {f"{self._id} → {to}": channel.run() for to, channel in self._channels.items()}
        own = {
            f"local messages of {self._id}": self._read_local_messages(),
            f"clock of {self._id}": self._keep_time(),
            f"acknowledgements of {self._id}": self._send_acks(),
            f"handover of {self._id}": self._handover.run(),
        }
        return {self._id: main(), **own, **channels}

    async def close(self) -> None:
        await self._handover.close()
        for channel in self._channels.values():
            await channel.close()

    def samples(self) -> list[QueueSample]:
        outputs = [QueueSample(self._id, f"output:{name}", n) for name, n in self.waiting().items()]
        if self._role == "source":
            return outputs
        return [QueueSample(self._id, "input", self._waiting_to_be_processed()), *outputs]

    # Tasks.

    async def _emit(self) -> None:
        await self._opened.wait()
        intake = Intake(cast(Source, self._made), self._context, self._capture, self._give_up)
        more = True
        while more:
            more = await intake.take(await self._may_capture())
            if self._in_hand:
                await self._has_room.wait()
                in_hand, self._in_hand = self._in_hand, []
                self._emit_captured(in_hand)
        self._do(self._core.end(self._now()))

    async def _may_capture(self) -> int:
        """Waits until the source may make tuples. Returns how many."""
        if self._saturates:
            while not self._wants():
                self._stirred.clear()
                await self._stirred.wait()
            return 1
        return self._core.room if self._may_emit() else 1

    def _wants(self) -> bool:
        """Whether what the source emits now is the next to be sent: there is a route, and nothing waits."""
        if not self._has_room.is_set() or self._core.kept() >= self._most_open:
            return False
        return all(self._sends_next(name, waiting) for name, waiting in self.waiting().items())

    def _sends_next(self, downstream: str, waiting: int) -> bool:
        hop = self.route.hops.get(downstream)
        if hop is None or waiting:
            return False
        for to in hop.replicas():
            channel = self._channels.get(to)
            # A replica on this node has no channel: what it has not taken waits in its input.
            if channel.waiting if channel is not None else self._core.in_flight(downstream, to) > 1:
                return False
        return True

    def _may_emit(self) -> bool:
        return self._has_room.is_set() or not self._sources_wait

    def _capture(self, captured: list[Captured]) -> None:
        """Emits what was captured, or keeps it in hand until there is room."""
        if self._may_emit():
            self._emit_captured(captured)
        else:
            self._in_hand += captured

    def _emit_captured(self, captured: list[Captured]) -> None:
        first = self._core.position + 1
        effects = self._core.emit(captured, self._now())
        self._recorder.captured(first, [len(payloads[0]) if payloads else 0 for payloads, _ in captured])
        self._do(effects)

    def _give_up(self, reason: GivenUp) -> None:
        """Records that the last captured tuple has lost its payload."""
        tau = self._core.position + len(self._in_hand)
        self._recorder.dropped(StreamTuple(self._id, tau, tau - 1, 0, 0), f"dead_letter:{reason}")

    async def _operate(self) -> None:
        each = {upstream: self._one_by_one(upstream) for upstream in self._core.neighbours.upstreams}
        while True:
            if not self._work:
                self._has_work.clear()
                await self._has_work.wait()
            job, size = self._work.popleft()
            self._work_bytes -= size
            if isinstance(job, Process):
                await each[job.upstream].work(zip(repeat(job.upstream), job.items))
                continue
            payloads = await self._process(job.unit)
            result = job.unit.result(payloads)
            self._recorder.emitted([result])
            self._record_inputs(job.unit)
            self._do(self._core.processed(job.unit, payloads, self._now()))

    def _one_by_one(self, upstream: str) -> OneByOne:
        def hand_on(items: Sequence[StreamTuple], results: Sequence[Payloads]) -> None:
            self._do(self._core.processed_each(upstream, items, results, self._now()))

        operator = cast(Operator, self._made)
        return OneByOne(operator, self._spec, self._role, self._context, self._recorder, hand_on)

    async def _process(self, unit: Unit) -> Payloads:
        started = self._now()
        try:
            payloads = await process(cast(Operator, self._made), unit, self._spec, self._context.sleep)
        except GivenUp as error:
            self._recorder.dropped(unit, f"dead_letter:{error}")
            return ()
        if self._role == "operator":
            self._recorder.processed_unit(unit, round((self._now() - started) * 1e9))
        elif unit.payloads():
            self._recorder.delivered_unit(unit)
        else:
            self._recorder.dropped(unit, "filtered")
        return payloads

    async def _read_local_messages(self) -> None:
        while True:
            while self._local_messages:
                sender, content = self._local_messages.popleft()
                if isinstance(content, Batch):
                    await self.take(content, sender if sender != content.sender else "")
                else:
                    self.receive_message(sender, content)
            self._has_local_messages.clear()
            await self._has_local_messages.wait()

    async def _send_acks(self) -> None:
        while True:
            await self._has_acks.wait()
            await self._context.sleep(ACK_DELAY)
            self._has_acks.clear()
            for to, report in self._acks.take():
                self._send_upstream(to, report)

    async def _keep_time(self) -> None:
        while True:
            self._sooner.clear()
            try:
                async with asyncio.timeout_at(self._tick_at + GRAIN if self._tick_at < inf else None):
                    await self._sooner.wait()
            except TimeoutError:
                self._tick_at = inf
                self._do(self._core.tick(self._now()))

    # Carries out what the core wants.

    def _do(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            match effect:
                case Process() | ProcessUnit():
                    size = weight_of(effect.items) if isinstance(effect, Process) else 0
                    self._work.append((effect, size))
                    self._work_bytes += size
                    self._has_work.set()
                case Send(_, to, items, floors):
                    self._send(to, items, floors)
                case Acknowledge():
                    self._acks.add(effect)
                    self._has_acks.set()
                case Ask(to):
                    self._send_upstream(to, messages.Ask())
                case Settle(_, to, floors, ends):
                    self._send_downstream(to, messages.Settled(floors, ends))
                case Drop(downstream, item, reason):
                    self._recorder.dropped(item, reason, downstream)
                case PushBack():
                    self._has_room.clear()
                case Resume():
                    self._has_room.set()
                case Forward(sibling, sender, _, items):
                    if news := [item for item in items if self._news_to_sibling(sender, item)]:
                        self._handover.put(sibling, sender, news)
        self._stirred.set()
        at = self._core.next_tick(self._now())
        if at < self._tick_at:
            self._tick_at = at
            self._sooner.set()

    def _send(self, to: str, items: Sequence[StreamTuple], floors: Mapping[str, int]) -> None:
        if self._connector.send_local(to, self._id, Batch(self._id, items, floors)):
            self._sent(to, items)
        else:
            self._channels[to].put(items, floors)

    def _send_upstream(self, to: str, message: Message) -> None:
        if not self._connector.send_local(to, self._id, message):
            self._connector.answer(Pair(to, self._id), message)

    def _send_downstream(self, to: str, message: Message) -> None:
        if not self._connector.send_local(to, self._id, message):
            self._channels[to].send_message(message)

    def _hand_over(self) -> None:
        if self._assembling_sibling is not None:
            self._do(self._core.hand_over(self._assembling_sibling))

    def _news_to_sibling(self, sender: str, item: StreamTuple) -> bool:
        """Whether the item was not handed over before. Notes that it is now."""
        handed = self._handed.setdefault((sender, item.origin), Positions())
        if item.tau in handed:
            return False
        handed.add(item.tau)
        if len(handed) > MOST_RANGES:
            handed.fill()
        return True

    def _waiting_to_be_processed(self) -> int:
        return sum(1 if isinstance(each, ProcessUnit) else len(each.items) for each, _ in self._work)

    def _open_channel(self, to: str) -> Channel:
        def failed() -> None:
            self._do(self._core.connection_failed(self._downstreams[to], to, self._now()))

        return Channel(
            lambda on_message, on_lost: self._connector.open_connection(
                Pair(self._id, to), on_message, on_lost
            ),
            lambda pair, message: self.receive_message(to, message),
            lambda items: self._sent(to, items),
            failed,
            lambda item, reason: self._recorder.dropped(item, reason, self._downstreams[to]),
        )

    # Telemetry.

    def _sent(self, to: str, items: Sequence[StreamTuple]) -> None:
        self._recorder.sent(to, items)
        self._stirred.set()

    def _record_holes(self, upstream: str, items: Sequence[StreamTuple]) -> None:
        for item in items:
            if not (item.payloads or item.last or self._core.knows(upstream, item)):
                self._recorder.dropped(item, "filtered")

    def _record_inputs(self, unit: Unit) -> None:
        """Records once of each input that it became part of a result, though windows overlap."""
        for item in (item for items in unit.inputs.values() for item in items):
            absorbed = self._absorbed.setdefault(item.origin, Positions())
            if item.tau not in absorbed:
                absorbed.add(item.prev + 1, item.tau)
                if len(absorbed) > MOST_RANGES:
                    absorbed.fill()
                self._recorder.absorbed(item.origin, item.tau)

    # Helpers.

    def _streams_of(self, upstream: str) -> tuple[str, ...]:
        return self._origins[upstream] if upstream in self._core.neighbours.upstreams else ()

    def _now(self) -> float:
        return self._context.time()


def _of_streams(streams: Sequence[str], by_stream: Mapping[str, T]) -> dict[str, T]:
    return {origin: value for origin, value in by_stream.items() if origin in streams}
