"""The run-time of one operator replica: input queue → operator → one dispatcher per downstream operator.

Full buffers push back: the dispatcher's on the operator, the input queue's on the connections that feed it.
Only a source drops, because the world does not wait.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, cast

from node_agent.dataflow.dispatcher import Dispatcher, Limits
from node_agent.dataflow.registry import Context, Operator, OperatorKind, Source
from node_agent.model.plan import Replica
from node_agent.model.telemetry import (
    Event,
    QueueSample,
    TupleDelivered,
    TupleEmitted,
    TupleProcessed,
    TupleReceived,
)
from node_agent.model.tuples import StreamTuple
from node_agent.routing.policy import Route


class ReplicaRuntime:
    """``params`` must be an instance of ``kind.params``."""

    def __init__(
        self,
        replica: Replica,
        kind: OperatorKind,
        params: Any,
        context: Context,
        dispatchers: Sequence[Dispatcher],
        record: Callable[[Event], None],
        limits: Limits,
    ) -> None:
        self.replica = replica
        self.route = Route()
        self._id = replica.id
        self._role = kind.role
        self._made = kind.factory(params, context)
        self._context = context
        self._dispatchers = dispatchers
        self._record = record
        self._inputs: asyncio.Queue[StreamTuple] = asyncio.Queue(limits.input_queue)
        self._opened = asyncio.Event()

    def open_source(self) -> None:
        """Let the source emit; without effect on other operators."""
        self._opened.set()

    def steer(self, route: Route) -> None:
        self.route = route
        for dispatcher in self._dispatchers:
            dispatcher.steer(route.to(dispatcher.downstream))

    async def receive(self, sender: str, item: StreamTuple) -> None:
        """Take ``item`` once there is room for it. If cancelled before, it was not received."""
        await self._inputs.put(item)
        self._record(TupleReceived(self._id, sender, item.origin, item.tau, len(item.payload)))

    def runs(self) -> dict[str, Coroutine[Any, Any, None]]:
        """What must run for this replica to work, by name; the owner makes tasks of it."""
        main = {"source": self._emit, "operator": self._operate, "sink": self._consume}[self._role]
        dispatch = {f"{self._id} → {d.downstream}": d.run() for d in self._dispatchers}
        return {self._id: main(), **dispatch}

    async def close(self) -> None:
        for dispatcher in self._dispatchers:
            await dispatcher.close()

    def samples(self) -> list[QueueSample]:
        inputs = [] if self._role == "source" else [QueueSample(self._id, "input", self._inputs.qsize())]
        return inputs + [dispatcher.sample() for dispatcher in self._dispatchers]

    async def _emit(self) -> None:
        source = cast(Source, self._made)
        await self._opened.wait()
        tau = 1
        while (payload := await source.next(tau)) is not None:
            item = StreamTuple(self._id, tau, self._context.now_ns(), payload)
            self._record(TupleEmitted(self._id, item.origin, item.tau, len(payload)))
            for dispatcher in self._dispatchers:
                dispatcher.offer(item)
            tau += 1

    async def _operate(self) -> None:
        operator = cast(Operator, self._made)
        while True:
            item = await self._inputs.get()
            started = self._context.time()
            outputs = await operator.process(item)
            took_ns = round((self._context.time() - started) * 1e9)
            self._record(TupleProcessed(self._id, item.origin, item.tau, len(item.payload), took_ns))
            for output in outputs:
                for dispatcher in self._dispatchers:
                    await dispatcher.put(output)

    async def _consume(self) -> None:
        sink = cast(Operator, self._made)
        while True:
            item = await self._inputs.get()
            await sink.process(item)
            self._record(TupleDelivered(self._id, item.origin, item.tau, len(item.payload), item.born_ns))
