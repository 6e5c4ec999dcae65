"""Passes tuples on to a sibling, another replica of the same operator, in the name of their sender.

While the inputs of a join choose different replicas of it, parts of one unit arrive at several of them; the
parts are passed on to one sibling. If another sibling is chosen, what was not sent yet goes there. What a
sibling does not take within ``EXPIRES``, or what exceeds ``MOST``, is given up and reported as lost.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

from node_agent.apps.dataflow.model.tuples import StreamTuple
from node_agent.apps.dataflow.windows.units import Units
from node_agent.apps.dataflow.wire.codec import OnLost, OnMessage, TupleConnection
from node_agent.apps.dataflow.wire.messages import Batch, DataDetails, PassedOn
from node_agent.ports import PortError
from node_agent.transport.errors import TooLarge
from node_agent.transport.messages import Pair
from node_agent.transport.outgoing import ignore_message

MOST = 4096
EXPIRES = 5.0
"""Seconds."""
LINGER = 5.0
"""Seconds for which an unused connection to a sibling is kept open."""
PAUSE = 0.05

OpenConnection = Callable[[Pair, OnMessage, OnLost], TupleConnection]


class Part(NamedTuple):
    """Items of ``sender``, upstream, on their way to ``sibling``."""

    sibling: str
    sender: str
    items: Sequence[StreamTuple]
    made: Sequence[Units]
    since: float


class HandoverCallbacks(NamedTuple):
    """Called with what became of items: ``taken`` by the connection; ``lost``, with the reason; given
    ``back``.
    """

    taken: Callable[[str, Sequence[StreamTuple]], None]
    lost: Callable[[Sequence[StreamTuple], str], None]
    back: Callable[[Sequence[Part]], None]


class Handover:
    """``send_local`` gives a batch to a replica of this node; it returns False if the replica is on another
    node.
    """

    def __init__(
        self,
        own: str,
        send_local: Callable[[str, str, Batch], bool],
        open_connection: OpenConnection,
        callbacks: HandoverCallbacks,
    ) -> None:
        self._own = own
        self._send_local = send_local
        self._open_connection = open_connection
        self._callbacks = callbacks
        self._parts: deque[Part] = deque()
        self._under_way: Part | None = None
        self._attempt: asyncio.Timeout | None = None
        self._sibling: str | None = None
        self._filled = asyncio.Event()
        self._connections: dict[str, TupleConnection] = {}

    @property
    def waiting(self) -> int:
        under_way = len(self._under_way.items) if self._under_way is not None else 0
        return under_way + sum(len(part.items) for part in self._parts)

    def put(
        self, sibling: str, sender: str, items: Sequence[StreamTuple], made: Sequence[Units] = ()
    ) -> None:
        """Passes ``items`` of ``sender``, upstream, on to ``sibling``."""
        if self._send_local(sibling, self._own, Batch(sender, items, {}, made)):
            self._callbacks.taken(sibling, items)
        elif self.waiting + len(items) > MOST:
            self._callbacks.lost(items, "expired")
        else:
            self._parts.append(Part(sibling, sender, items, made, asyncio.get_running_loop().time()))
            self._filled.set()

    def retarget(self, sibling: str | None) -> None:
        """Sends what no connection has taken yet to ``sibling`` instead; None: gives it back."""
        self._sibling = sibling
        parts = list(self._parts)
        self._parts.clear()
        self._redirect(parts)
        if self._attempt is not None and not self._attempt.expired():
            self._attempt.reschedule(asyncio.get_running_loop().time())

    async def run(self) -> None:
        while True:
            if self._parts:
                self._under_way = self._parts.popleft()
                await self._pass_on(self._under_way)
                self._under_way = None
                continue
            self._filled.clear()
            try:
                async with asyncio.timeout(LINGER if self._connections else None):
                    await self._filled.wait()
            except TimeoutError:
                await self.close()

    async def close(self) -> None:
        """May be repeated."""
        while self._connections:
            await self._connections.popitem()[1].close()

    async def _pass_on(self, part: Part) -> None:
        left, expires = list(part.items), part.since + EXPIRES
        try:
            async with asyncio.timeout_at(expires) as self._attempt:
                while left:
                    try:
                        count = await self._send_some(part, left)
                    except TooLarge as error:
                        self._callbacks.lost(left[:1], error.reason)
                        left = left[1:]
                        continue
                    self._callbacks.taken(part.sibling, left[:count])
                    left = left[count:]
        except TimeoutError:
            if self._attempt is not None and self._attempt.when() == expires:
                self._callbacks.lost(left, "expired")
            elif left:
                self._redirect([part._replace(items=left)])
        finally:
            self._attempt = None

    def _redirect(self, parts: Sequence[Part]) -> None:
        if self._sibling is None:
            self._callbacks.back(parts)
        else:
            self._parts.extendleft(part._replace(sibling=self._sibling) for part in reversed(parts))

    def _lost(self, pair: Pair, items: Sequence[StreamTuple], reason: str) -> None:
        self._callbacks.lost(items, "link_failed")

    async def _send_some(self, part: Part, items: list[StreamTuple]) -> int:
        connection = self._connections.get(part.sibling)
        if connection is None:
            connection = self._connections[part.sibling] = self._open_connection(
                Pair(self._own, part.sibling), ignore_message, self._lost
            )
        try:
            return await connection.send(items, DataDetails({}, PassedOn(part.sender, part.made)))
        except PortError:
            await asyncio.sleep(PAUSE)  # a connection takes a moment to notice that it is dead
            return 0
