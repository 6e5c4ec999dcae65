"""Everything for one other node: waits until it is acknowledged, over as many connections as it takes.

A connection is made when there is something to send, and closed when nothing was for a while: a vehicle
leaves the brokers behind that it passed. While a node cannot be reached, what is for it waits.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import islice
from typing import NamedTuple

from node_agent.apps.mcep.frames import Have, Item
from node_agent.apps.mcep.messages import Said
from node_agent.apps.mcep.wire import encode
from node_agent.ports import PortError
from node_agent.transport.messages import Pair
from node_agent.transport.outgoing import OutgoingConnection

MOST_AT_ONCE = 64
PAUSE_S = 0.05
"""After a failed attempt, besides the pause that the connection makes itself."""
IDLE_S = 5.0

Sender = OutgoingConnection[Item, None, Have]


class _Waiting(NamedTuple):
    data: bytes
    said: Said


class Link:
    """``connect`` makes a connection that reports to this link. ``arrived`` gets each message that the other
    node has taken, in order."""

    def __init__(
        self, to: str, connect: Callable[["Link"], Sender], arrived: Callable[[str, Said], None]
    ) -> None:
        self.to = to
        self.messages = self.bytes = self.connections = 0
        """What was handed over; what is sent again counts again."""
        self.up = False
        self._connect, self._arrived = connect, arrived
        self._waiting: deque[_Waiting] = deque()
        self._acknowledged = 0
        """The number of the last message that the other node has."""
        self._cursor = 0
        """The number of the last message that was sent over the present connection."""
        self._furthest = 0
        """The same over any connection."""
        self._news = asyncio.Event()

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def add(self, said: Said) -> None:
        self._waiting.append(_Waiting(encode(said), said))
        self._news.set()

    async def run(self) -> None:
        while True:
            while not self._waiting:
                self._news.clear()
                await self._news.wait()
            connection = self._connect(self)
            try:
                await self._carry(connection)
            finally:
                self.up = False
                await connection.close()
            self._cursor = self._acknowledged

    async def _carry(self, connection: Sender) -> None:
        """Sends what waits, until nothing does for a while."""
        idle = False
        while not idle:
            self._news.clear()
            try:
                if self._cursor < self._acknowledged + len(self._waiting):
                    await connection.ready()
                    self._count_connection()
                    self._sent(items := self._next_items(), await connection.send(items))
                else:
                    idle = not await self._wait() and not self._waiting
            except PortError:
                await asyncio.sleep(PAUSE_S)

    async def _wait(self) -> bool:
        """Returns whether something happened."""
        with suppress(TimeoutError):
            async with asyncio.timeout(IDLE_S):
                await self._news.wait()
        return self._news.is_set()

    def _next_items(self) -> list[Item]:
        begin = self._cursor - self._acknowledged
        following = islice(self._waiting, begin, begin + MOST_AT_ONCE)
        return [Item(self._cursor + place, each.data) for place, each in enumerate(following, 1)]

    def _sent(self, items: Sequence[Item], count: int) -> None:
        self.messages += count
        self.bytes += sum(len(item.said) for item in items[:count])
        if count:
            self._cursor = max(self._cursor, items[count - 1].number)
            self._furthest = max(self._furthest, self._cursor)

    def _count_connection(self) -> None:
        if not self.up:
            self.up = True
            self.connections += 1

    def said(self, pair: Pair, message: Have) -> None:
        """The other node says what it has."""
        while self._acknowledged < min(message.number, self._furthest) and self._waiting:
            self._acknowledged += 1
            self._arrived(self.to, self._waiting.popleft().said)
        self._cursor = self._acknowledged if message.again else max(self._cursor, self._acknowledged)
        self._news.set()

    def lost(self, pair: Pair, items: Sequence[Item], reason: str) -> None:
        """The connection broke."""
        self.up = False
        self._cursor = self._acknowledged
        self._news.set()
