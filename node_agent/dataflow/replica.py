"""The run-time of one operator replica: input queue → operator → one dispatcher per downstream operator.

Full buffers push back: the dispatcher's on the operator, the input queue's on the connections that feed it.
Only a source drops, because the world does not wait. Parts of windows and joins whose other parts go to a
sibling are passed on to it.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, NamedTuple, cast

from node_agent.dataflow.assembly import Assembler
from node_agent.dataflow.dispatcher import Dispatcher, Limits
from node_agent.dataflow.handover import Handover, Heard, OpenLink
from node_agent.dataflow.processing import GivenUp, process
from node_agent.dataflow.registry import Context, Operator, OperatorKind, Source
from node_agent.dataflow.units import Unit
from node_agent.model.plan import Replica
from node_agent.model.query import OperatorSpec
from node_agent.model.telemetry import (
    Event,
    QueueSample,
    TupleDelivered,
    TupleDropped,
    TupleEmitted,
    TupleProcessed,
    TupleReceived,
    TupleSent,
)
from node_agent.model.tuples import StreamTuple
from node_agent.model.units import Each
from node_agent.routing.route import Route
from node_agent.transport.messages import Batch, Message


class _Input(NamedTuple):
    """``sender``: the replica upstream that ``item`` is from; ``passed_on`` to here by a sibling."""

    sender: str
    item: StreamTuple
    passed_on: bool


class ReplicaRuntime:
    """``params`` must be an instance of ``kind.params``."""

    def __init__(
        self,
        replica: Replica,
        spec: OperatorSpec,
        kind: OperatorKind,
        params: Any,
        assembler: Assembler,
        context: Context,
        dispatchers: Sequence[Dispatcher],
        open_link: OpenLink,
        record: Callable[[Event], None],
        limits: Limits,
    ) -> None:
        self.replica = replica
        self.route = Route()
        self._id = replica.id
        self._spec = spec
        self._role = kind.role
        self._assembler = assembler
        self._made = kind.factory(params, context)
        context.outlet = self
        self._context = context
        self._dispatchers = dispatchers
        self._record = record
        self._inputs: asyncio.Queue[_Input] = asyncio.Queue(limits.input_queue)
        self._handover = Handover(
            self._id, lambda to, sender, batch: False, open_link, Heard(self._record_sent, self._lose)
        )
        self._elsewhere: str | None = None
        self._latest_senders: dict[tuple[str, str], str] = {}
        self._opened = asyncio.Event()

    def open_source(self) -> None:
        """Let the source emit; without effect on other operators."""
        self._opened.set()

    def steer(self, route: Route) -> None:
        self.route = route
        for dispatcher in self._dispatchers:
            dispatcher.steer(route.hops.get(dispatcher.downstream))

    def waiting(self) -> dict[str, int]:
        """Tuples that wait here, by downstream operator."""
        return {dispatcher.downstream: dispatcher.waiting() for dispatcher in self._dispatchers}

    def has_room(self) -> bool:
        """Whether nothing has to be dropped for what is emitted now."""
        return all(dispatcher.has_room() for dispatcher in self._dispatchers)

    async def wait_for_room(self) -> None:
        while not self.has_room():
            for dispatcher in self._dispatchers:
                await dispatcher.wait_for_room()

    def silent(self) -> tuple[str, ...]:
        """The downstream replicas that do not answer."""
        return tuple(to for dispatcher in self._dispatchers for to in dispatcher.silent())

    def queued(self) -> int:
        """Tuples that wait here, on their way in or out."""
        return self._inputs.qsize() + self._handover.waiting + sum(self.waiting().values())

    def meet_at(self, sibling: str | None) -> None:
        """From now on units are put together at ``sibling``, with what there is here; None: here."""
        if sibling == self._elsewhere:
            return
        self._elsewhere = sibling
        if sibling is not None:
            items, made = self._assembler.surrender()
            by_sender: dict[str, list[StreamTuple]] = {}
            for upstream, item in items:
                by_sender.setdefault(self._latest_senders[upstream, item.origin], []).append(item)
            for sender, theirs in by_sender.items():
                # What is done of the output is told like what is done of any stream.
                self._handover.put(sibling, sender, theirs, {self.replica.operator: made})
            self._account()

    async def take(self, batch: Batch, via: str = "") -> None:
        """``via``: the sibling that has passed ``batch`` on, if it did not come straight from its sender."""
        if via and (made := batch.floors.get(self.replica.operator)):
            self._assembler.made_elsewhere(operator_of(batch.sender), batch.items, made)
        for item in batch.items:
            await self.receive(batch.sender, item, via)

    def hear(self, sender: str, message: Message) -> None:
        """Nothing depends on what other replicas say: nothing is promised."""

    async def receive(self, sender: str, item: StreamTuple, via: str = "") -> None:
        """Take ``item`` once there is room for it. If cancelled before, it was not received."""
        await self._inputs.put(_Input(sender, item, bool(via)))
        if not item.last:
            self._record(TupleReceived(self._id, via or sender, item.origin, item.tau, item.size))

    def runs(self) -> dict[str, Coroutine[Any, Any, None]]:
        """What must run for this replica to work, by name; the owner makes tasks of it."""
        main = self._emit if self._role == "source" else self._operate
        dispatch = {f"{self._id} → {d.downstream}": d.run() for d in self._dispatchers}
        return {self._id: main(), f"handover of {self._id}": self._handover.run(), **dispatch}

    async def close(self) -> None:
        await self._handover.close()
        for dispatcher in self._dispatchers:
            await dispatcher.close()

    def samples(self) -> list[QueueSample]:
        inputs = [] if self._role == "source" else [QueueSample(self._id, "input", self._inputs.qsize())]
        return inputs + [dispatcher.sample() for dispatcher in self._dispatchers]

    async def _emit(self) -> None:
        source = cast(Source, self._made)
        await self._opened.wait()
        tau = 1
        born_ns = prev_born_ns = 0
        while (payload := await source.next(tau)) is not None:
            born_ns = max(self._context.now_ns(), prev_born_ns)  # a clock may be set back, a stream not
            item = StreamTuple(self._id, tau, tau - 1, born_ns, prev_born_ns, (payload,))
            self._record(TupleEmitted(self._id, item.origin, item.tau, item.size))
            for dispatcher in self._dispatchers:
                dispatcher.offer(item)
            tau, prev_born_ns = tau + 1, born_ns
        born_ns = max(self._context.now_ns(), prev_born_ns)
        for dispatcher in self._dispatchers:
            await dispatcher.put(StreamTuple(self._id, tau, tau - 1, born_ns, prev_born_ns, last=True))

    async def _operate(self) -> None:
        while True:
            sender, item, passed_on = await self._inputs.get()
            upstream = operator_of(sender)
            # What a sibling has passed on stays: two that do not agree on where units are made would else
            # send it to and fro.
            if self._elsewhere is not None and not passed_on:
                self._handover.put(self._elsewhere, sender, [item])
                continue
            self._latest_senders[upstream, item.origin] = sender
            for unit in self._assembler.add(upstream, item):
                if unit.complete:
                    await self._process(unit)
                self._assembler.done(unit.origin, unit.tau)
            self._account()

    async def _process(self, unit: Unit) -> None:
        """Work on ``unit`` and hand its result on, which has no payload if there is nothing to say."""
        started = self._context.time()
        try:
            payloads = await process(cast(Operator, self._made), unit, self._spec, self._context.sleep)
        except GivenUp as error:
            payloads = ()
            self._drop(unit, f"dead_letter:{error}")
        else:
            if not unit.last:
                took_ns = round((self._context.time() - started) * 1e9)
                self._record_processed(unit, took_ns)
        result = unit.result(payloads)
        if not isinstance(self._spec.takes, Each) and not unit.last:
            self._record(TupleEmitted(self._id, result.origin, result.tau, result.size))
        for dispatcher in self._dispatchers:
            await dispatcher.put(result)

    def _record_processed(self, unit: Unit, took_ns: int) -> None:
        if self._role == "operator":
            self._record(TupleProcessed(self._id, unit.origin, unit.tau, unit.size, took_ns))
        elif unit.payloads():
            self._record(TupleDelivered(self._id, unit.origin, unit.tau, unit.size, unit.born_ns))
        else:
            self._drop(unit, "filtered")

    def _account(self) -> None:
        """Say what became of the items that made new ones, or that were to."""
        released = self._assembler.released()
        unused = {(item.origin, item.tau): item for item in self._assembler.unused()}
        for item in unused.values():
            self._record(TupleDropped(self._id, item.origin, item.tau, item.size, "incomplete_window"))
        if not isinstance(self._spec.takes, Each):
            for position in released:
                if (position.origin, position.tau) not in unused:
                    self._record(TupleDropped(self._id, position.origin, position.tau, 0, "absorbed"))

    def _record_sent(self, to: str, items: Sequence[StreamTuple]) -> None:
        for item in items:
            if not item.last:
                self._record(TupleSent(self._id, to, item.origin, item.tau, item.size))

    def _lose(self, items: Sequence[StreamTuple], reason: str) -> None:
        for item in items:
            if not item.last:
                self._record(TupleDropped(self._id, item.origin, item.tau, item.size, reason))

    def _drop(self, unit: Unit, reason: str) -> None:
        self._record(TupleDropped(self._id, unit.origin, unit.tau, unit.size, reason))


def operator_of(replica: str) -> str:
    """The operator that a replica's id names."""
    return replica.rpartition("/")[0]
