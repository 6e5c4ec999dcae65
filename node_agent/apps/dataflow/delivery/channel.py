"""Sends what the core has sent to one downstream replica on another node, over one connection.

Whatever goes wrong is reported as one fact, that the connection has failed. What waits here is then
forgotten, because the core sends it again.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence

from node_agent.apps.dataflow.model.tuples import StreamTuple
from node_agent.apps.dataflow.wire.codec import OnLost, OnMessage, TupleConnection
from node_agent.apps.dataflow.wire.messages import DataDetails, Message
from node_agent.ports import ConnectionLost, PortError
from node_agent.transport.errors import TooLarge

PAUSE = 0.05

OpenConnection = Callable[[OnMessage, OnLost], TupleConnection]


class Channel:
    """``on_sent`` gets the items that the connection has taken. ``on_failed`` means that anything sent
    before may be lost. ``on_dropped`` gets an item that no frame can carry; a hole is sent in its place.
    """

    def __init__(
        self,
        open_connection: OpenConnection,
        on_message: OnMessage,
        on_sent: Callable[[Sequence[StreamTuple]], None],
        on_failed: Callable[[], None],
        on_dropped: Callable[[StreamTuple, str], None],
    ) -> None:
        self._connection = open_connection(on_message, lambda pair, items, reason: self._failed())
        self._on_sent = on_sent
        self._on_failed = on_failed
        self._on_dropped = on_dropped
        self._items: deque[StreamTuple] = deque()
        self._floors: dict[str, int] = {}
        self._wanted = False
        self._failures = 0
        self._changed = asyncio.Event()

    @property
    def answers(self) -> bool:
        return self._connection.answers

    def hurry(self) -> None:
        """Tries to reach a silent replica now."""
        self._connection.hurry()

    @property
    def waiting(self) -> int:
        """How many items the connection has not taken yet."""
        return len(self._items)

    def put(self, items: Sequence[StreamTuple], floors: Mapping[str, int]) -> None:
        self._items.extend(items)
        self._floors |= floors
        self._changed.set()

    def want(self, wanted: bool) -> None:
        """Keeps the connection open while the route leads over it, even if nothing is sent.

        The other end may have to ask what is done, and this end must notice when it dies.
        """
        self._wanted = wanted
        self._changed.set()

    def send_message(self, message: Message) -> None:
        """Sends a message; it is lost if there is no connection."""
        self._connection.send_message(message)

    async def run(self) -> None:
        while True:
            try:
                if self._items:
                    await self._send()
                    continue
                self._changed.clear()
                if self._wanted:
                    await self._connection.ready()
                await self._changed.wait()
            except PortError:
                self._failed()
                await asyncio.sleep(PAUSE)  # a connection takes a moment to notice that it is dead

    async def close(self) -> None:
        await self._connection.close()

    async def _send(self) -> None:
        await self._connection.ready()
        failures, batch = self._failures, list(self._items)
        if not batch:
            return
        try:
            count = await self._connection.send(batch, DataDetails(self._floors))
        except TooLarge as error:
            if not batch[0].payloads:
                raise ConnectionLost(f"a hole cannot be sent: {error}") from error
            if failures == self._failures:
                self._items[0] = batch[0].with_payloads(())
                self._on_dropped(batch[0], error.reason)
            return
        self._on_sent(batch[:count])
        if failures == self._failures:  # else other items wait now
            for _ in range(count):
                self._items.popleft()

    def _failed(self) -> None:
        self._failures += 1
        self._items.clear()
        self._changed.set()
        self._on_failed()
