"""The receiving end of one connection that is open: what has arrived and waits for the application."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Generic

from node_agent.ports import ConnectionLost
from node_agent.transport.admission import Checks
from node_agent.transport.codec import BatchT, Codec, MessageT
from node_agent.transport.connection import Connection
from node_agent.transport.credit import Grant
from node_agent.transport.messages import Alive, Pair

OnBatch = Callable[[Pair, BatchT], Awaitable[None]]


class ReceivingSession(Generic[BatchT, MessageT]):
    """A connection from ``node``. ``task`` serves it. What waits is bounded by ``grant``."""

    def __init__(
        self,
        pair: Pair,
        node: str,
        connection: Connection[BatchT, MessageT],
        codec: Codec[Any, Any, BatchT, MessageT],
        checks: Checks[BatchT, MessageT],
        grant: Grant,
        task: "asyncio.Task[None]",
    ) -> None:
        self.pair = pair
        self.node = node
        self.connection = connection
        self.checks = checks
        self.task = task
        self._items, self._sizes = codec.items, codec.sizes
        self._grant = grant
        self._inbox: deque[tuple[BatchT, list[int]]] = deque()
        self._changed = asyncio.Event()
        self._finished = False

    def arrived(self, batch: BatchT) -> None:
        """Raise FrameError if the sender may not send this, or not so much."""
        self.checks.check_batch(batch)
        sizes = self._sizes(self._items(batch))
        self._grant.arrived(sizes)
        self._inbox.append((batch, sizes))
        self._changed.set()

    @property
    def waiting(self) -> int:
        """How many items wait for the application."""
        return self._grant.waiting

    def finish(self) -> None:
        """Nothing more will arrive."""
        self._finished = True
        self._changed.set()

    async def pass_on(self, on_batch: OnBatch[BatchT]) -> None:
        """Hand batches to the application one by one. Return when it has taken all and no more can arrive."""
        while self._inbox or not self._finished:
            if not self._inbox:
                self._changed.clear()
                await self._changed.wait()
                continue
            batch, sizes = self._inbox[0]
            await on_batch(self.pair, batch)
            self._inbox.popleft()
            if self._grant.take(sizes):
                with suppress(ConnectionLost):
                    self.connection.post(self.alive())

    def alive(self) -> Alive:
        """Return a keep-alive that says how much was taken."""
        self._grant.reported()
        return Alive(self._grant.taken)
