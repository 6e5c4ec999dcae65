"""The runtime of one operator replica in best effort: input queue → operator → one dispatcher per downstream.

Full buffers push back: those of dispatchers on the operator, the input queue on the connections that feed it.
Only a source drops tuples, because a camera does not wait; one that saturates does. Parts of windows and
joins whose other parts go to a sibling are passed on to it.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import Any, NamedTuple, cast

from node_agent.apps.dataflow.best_effort.dispatcher import Dispatcher, Limits
from node_agent.apps.dataflow.delivery.handover import Handover, HandoverCallbacks, OpenConnection, Part
from node_agent.apps.dataflow.delivery.intake import Captured, Intake
from node_agent.apps.dataflow.delivery.tuple_recorder import TupleRecorder
from node_agent.apps.dataflow.events import QueueSample
from node_agent.apps.dataflow.model.plan import Replica, operator_of
from node_agent.apps.dataflow.model.query import OperatorSpec
from node_agent.apps.dataflow.model.tuples import StreamTuple
from node_agent.apps.dataflow.moving.stream import MovingStream
from node_agent.apps.dataflow.operators.one_by_one import OneByOne, Payloads
from node_agent.apps.dataflow.operators.pace import saturates
from node_agent.apps.dataflow.operators.processing import GivenUp, process
from node_agent.apps.dataflow.operators.registry import Context, Operator, OperatorKind, Source
from node_agent.apps.dataflow.switching.route import Route
from node_agent.apps.dataflow.windows.assembly import Assembler
from node_agent.apps.dataflow.windows.units import Unit, Units
from node_agent.apps.dataflow.wire.messages import Batch, Message
from node_agent.model.telemetry import Event

MOST_CAPTURED = 1024
"""How many tuples a source makes, or an operator without downstream processes, before other tasks run."""
KEEP_S = 1.0
"""Seconds for which items that a sibling passed on stay here, even if another sibling assembles units now."""


class _From(NamedTuple):
    """Where an item is from: replica ``sender`` of ``upstream``. ``passed_on``: a sibling sent it.

    ``made``: which of its units were made already, as a sibling would have to know.
    """

    sender: str
    upstream: str
    passed_on: bool
    made: Sequence[Units] = ()


Output = Dispatcher | MovingStream
"""To a downstream operator: to the replica that is chosen, or to wherever it is now."""


class ReplicaRuntime:
    """``params`` must be an instance of ``kind.params``. Without an ``assembler``, items are processed one by
    one.
    """

    def __init__(
        self,
        replica: Replica,
        spec: OperatorSpec,
        kind: OperatorKind,
        params: Any,
        assembler: Assembler | None,
        context: Context,
        dispatchers: Sequence[Output],
        open_connection: OpenConnection,
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
        self._recorder = TupleRecorder(replica.id, record)
        self._limits = limits
        self._saturates = saturates(params)
        self._inputs: deque[tuple[_From, StreamTuple]] = deque()
        self._has_input = asyncio.Event()
        self._has_room = asyncio.Event()
        self._input_lock = asyncio.Lock()
        callbacks = HandoverCallbacks(self._recorder.sent, self._lose, self._take_back)
        self._handover = Handover(self._id, lambda to, sender, batch: False, open_connection, callbacks)
        self._assembling_sibling: str | None = None
        self._keep_until: float | None = None
        self._latest_senders: dict[tuple[str, str], str] = {}
        self._opened = asyncio.Event()
        self._tau = self._born_ns = 0

    def open_source(self) -> None:
        """Lets the source emit; has no effect on other operators."""
        self._opened.set()

    def steer(self, route: Route) -> None:
        self.route = route
        for dispatcher in self._dispatchers:
            dispatcher.steer(route.hops.get(dispatcher.downstream))

    def waiting(self) -> dict[str, int]:
        """Returns by downstream operator how many tuples wait here."""
        return {dispatcher.downstream: dispatcher.waiting() for dispatcher in self._dispatchers}

    def has_room(self) -> bool:
        """Whether a tuple can be emitted now without dropping another."""
        return all(dispatcher.has_room() for dispatcher in self._dispatchers)

    def silent(self) -> tuple[str, ...]:
        """Returns the downstream replicas that do not answer."""
        return tuple(to for dispatcher in self._dispatchers for to in dispatcher.silent())

    def queued(self) -> int:
        """Returns how many tuples wait here, on their way in or out."""
        return len(self._inputs) + self._handover.waiting + sum(self.waiting().values())

    def assemble_at(self, sibling: str | None) -> None:
        """Hands over what incomplete units hold to ``sibling``, which assembles units from now on; None: this
        replica.
        """
        if sibling != self._assembling_sibling:
            self._assembling_sibling = sibling
            self._handover.retarget(sibling)
        elif self._keep_until is None or self._context.time() < self._keep_until:
            return
        self._keep_until = None
        if sibling is not None and self._assembler is not None:
            items, made = self._assembler.hand_over()
            by_sender: dict[str, list[StreamTuple]] = {}
            for upstream, item in items:
                by_sender.setdefault(self._latest_senders[upstream, item.origin], []).append(item)
            for sender, theirs in by_sender.items():
                self._handover.put(sibling, sender, theirs, made)
            self._record_inputs(self._assembler)

    def overrun(self, batch: Batch) -> bool:
        """Returns False: incoming items wait for room."""
        return False

    async def take(self, batch: Batch, via: str = "") -> None:
        """Takes ``batch`` as there is room. ``via``: the sibling that passed it on, if one did."""
        if via:
            self._note_made_elsewhere(batch.sender, batch.items, batch.made)
        items = batch.items
        while items:
            items = items[await self.receive(batch.sender, items, via) :]

    def receive_message(self, sender: str, message: Message) -> None:
        """Does nothing: best effort promises nothing, so messages of other replicas do not matter."""

    async def receive(self, sender: str, items: Sequence[StreamTuple], via: str = "") -> int:
        """Takes the first of ``items`` once there is room, and more if they fit. Returns how many.

        If cancelled before, it has received nothing.
        """
        async with self._input_lock:  # first come, first served
            while (room := self._limits.input_queue - len(self._inputs)) <= 0:
                self._has_room.clear()
                await self._has_room.wait()
            taken, origin = items[:room], _From(sender, operator_of(sender), bool(via))
            self._inputs.extend([(origin, item) for item in taken])
            self._has_input.set()
            self._recorder.received(via or sender, taken)
            return len(taken)

    def runs(self) -> dict[str, Coroutine[Any, Any, None]]:
        """Returns by name what must run for this replica to work; the owner makes tasks of it."""
        dispatch = {f"{self._id} → {d.downstream}": d.run() for d in self._dispatchers}
        return {self._id: self._main(), f"handover of {self._id}": self._handover.run(), **dispatch}

    async def close(self) -> None:
        await self._handover.close()
        for dispatcher in self._dispatchers:
            await dispatcher.close()

    def samples(self) -> list[QueueSample]:
        inputs = [] if self._role == "source" else [QueueSample(self._id, "input", len(self._inputs))]
        return inputs + [dispatcher.sample() for dispatcher in self._dispatchers]

    async def _main(self) -> None:
        if self._role == "source":
            await self._emit()
        elif self._assembler is None:
            await self._operate_one_by_one()
        else:
            await self._operate(self._assembler)

    async def _emit(self) -> None:
        await self._opened.wait()
        intake = Intake(cast(Source, self._made), self._context, self._capture, self._give_up)
        while await intake.take(await self._may_capture()):
            pass
        end = self._next_of_source((), self._context.now_ns(), last=True)
        for dispatcher in self._dispatchers:
            await dispatcher.put(end)

    async def _may_capture(self) -> int:
        """Waits until the source may make tuples. Returns how many."""
        if self._saturates:
            while not all(dispatcher.wants() for dispatcher in self._dispatchers):
                for dispatcher in self._dispatchers:
                    await dispatcher.wait_until_it_wants()
            return 1
        return await self._room() if self._limits.sources_wait else MOST_CAPTURED

    def _capture(self, captured: list[Captured]) -> None:
        items = [self._next_of_source(payloads, born_ns) for payloads, born_ns in captured]
        self._recorder.emitted(items)
        for dispatcher in self._dispatchers:
            if self._limits.sources_wait or self._saturates:
                dispatcher.extend(items)
            else:
                dispatcher.offer(items)

    def _give_up(self, reason: GivenUp) -> None:
        """Records that the last captured tuple has lost its payload."""
        self._recorder.dropped(StreamTuple(self._id, self._tau, self._tau - 1, 0, 0), f"dead_letter:{reason}")

    def _next_of_source(self, payloads: tuple[bytes, ...], born_ns: int, last: bool = False) -> StreamTuple:
        before, self._tau = self._tau, self._tau + 1
        # A clock may be set back, but times in a stream never fall.
        before_ns, self._born_ns = self._born_ns, max(born_ns, self._born_ns)
        return StreamTuple(self._id, self._tau, before, self._born_ns, before_ns, payloads, last)

    async def _operate_one_by_one(self) -> None:
        operator = cast(Operator, self._made)
        each = OneByOne(operator, self._spec, self._role, self._context, self._recorder, self._processed)
        while True:
            room = await self._room()
            await self._has_inputs()
            await each.work(self._next_inputs(room))

    async def _operate(self, assembler: Assembler) -> None:
        while True:
            await self._has_inputs()
            for upstream, item in self._next_inputs(1):
                await self._assemble(assembler, upstream, item)

    async def _assemble(self, assembler: Assembler, upstream: str, item: StreamTuple) -> None:
        for unit in assembler.add(upstream, item):
            if unit.complete:
                await self._process(unit)
            assembler.done(unit.origin, unit.tau)
        self._record_inputs(assembler)

    async def _process(self, unit: Unit) -> None:
        """Processes ``unit`` and hands its result on; without payload if the operator returns none."""
        started = self._context.time()
        try:
            payloads = await process(cast(Operator, self._made), unit, self._spec, self._context.sleep)
        except GivenUp as error:
            payloads = ()
            self._recorder.dropped(unit, f"dead_letter:{error}")
        else:
            if not unit.last:
                took_ns = round((self._context.time() - started) * 1e9)
                self._record_processed(unit, took_ns)
        result = unit.result(payloads)
        self._recorder.emitted([result])
        self._hand_on([result])
        await self._room()

    def _record_processed(self, unit: Unit, took_ns: int) -> None:
        if self._role == "operator":
            self._recorder.processed_unit(unit, took_ns)
        elif unit.payloads():
            self._recorder.delivered_unit(unit)
        else:
            self._recorder.dropped(unit, "filtered")

    def _record_inputs(self, assembler: Assembler) -> None:
        """Records of the items that are released whether they became part of a result."""
        released = assembler.released()
        unused = {(item.origin, item.tau): item for item in assembler.unused()}
        for item in unused.values():
            self._recorder.dropped(item, "incomplete_window")
        for position in released:
            if (position.origin, position.tau) not in unused:
                self._recorder.absorbed(position.origin, position.tau)

    def _lose(self, items: Sequence[StreamTuple], reason: str) -> None:
        for item in items:
            if not item.last:
                self._recorder.dropped(item, reason)

    def _note_made_elsewhere(self, sender: str, items: Sequence[StreamTuple], made: Sequence[Units]) -> None:
        if self._assembler is not None and made:
            self._assembler.made_elsewhere(operator_of(sender), items, made)

    def _take_back(self, parts: Sequence[Part]) -> None:
        """Takes back what was to be handed over and is needed here after all."""
        for part in parts:
            self._note_made_elsewhere(part.sender, part.items, part.made)
        returned = [
            (_From(part.sender, operator_of(part.sender), False, part.made), item)
            for part in parts
            for item in part.items
        ]
        self._inputs.extendleft(reversed(returned))
        if returned:
            self._has_input.set()

    async def _has_inputs(self) -> None:
        while not self._inputs:
            self._has_input.clear()
            await self._has_input.wait()

    def _next_inputs(self, most: int) -> Iterator[tuple[str, StreamTuple]]:
        """Yields the inputs to be processed here, one by one, so that the rest still counts as queued."""
        for _ in range(most):
            if not self._inputs:
                return
            self._has_room.set()
            origin, item = self._inputs.popleft()
            if self._assembling_sibling is not None:
                if not origin.passed_on:
                    self._handover.put(self._assembling_sibling, origin.sender, [item], origin.made)
                    continue
                # Siblings that disagree on who assembles units must not send it back and forth.
                self._keep_until = self._keep_until or self._context.time() + KEEP_S
            if self._assembler is not None:
                self._latest_senders[origin.upstream, item.origin] = origin.sender
            yield origin.upstream, item

    async def _room(self) -> int:
        """Waits until there is room for output. Returns how much; at least 1, because a finished result may
        wait.
        """
        for dispatcher in self._dispatchers:
            await dispatcher.within_bounds()
        return max(1, min((dispatcher.room for dispatcher in self._dispatchers), default=MOST_CAPTURED))

    def _processed(self, items: Sequence[StreamTuple], results: Sequence[Payloads]) -> None:
        self._hand_on([item.with_payloads(made) for item, made in zip(items, results, strict=True)])

    def _hand_on(self, results: Sequence[StreamTuple]) -> None:
        for dispatcher in self._dispatchers:
            dispatcher.extend(results)
