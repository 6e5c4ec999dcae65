"""Everything for one other node: waits until it is acknowledged, over as many connections as it takes.

If the other agent starts again, what waits is dropped: it was said to one that is dead.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from itertools import islice

from node_agent.apps.dataflow.moving.frames import BOOTS, Have, Part, cut
from node_agent.ports import PortError
from node_agent.transport.messages import Pair
from node_agent.transport.outgoing import OutgoingConnection

MOST_AT_ONCE = 16
PAUSE_S = 0.05
"""After a failed attempt, besides the pause that the connection makes itself."""

Connection = OutgoingConnection[Part, None, Have]


class Link:
    """``connect`` makes a connection that reports to this link; ``now`` returns seconds."""

    def __init__(self, boot: int, connect: Callable[["Link"], Connection], now: Callable[[], float]) -> None:
        self.silent_since: float | None = None
        """Since when the other node does not answer; None if it does, or was not asked."""
        self._session = boot * BOOTS
        self._connect, self._now = connect, now
        self._waiting: deque[tuple[bool, bytes]] = deque()
        self._acknowledged = 0
        """The number of the last part that the other node has."""
        self._cursor = 0
        """The number of the last part that was sent over the present connection."""
        self._furthest = 0
        """The same over any connection."""
        self._peer_boot = 0
        self._news = asyncio.Event()

    def add(self, data: bytes) -> None:
        self._waiting.extend(cut(data))
        self._news.set()

    def peer_started(self, boot: int) -> None:
        """The other agent is in this boot."""
        if 0 < self._peer_boot < boot:
            self._session += 1
            self._waiting.clear()
            self._acknowledged = self._cursor = self._furthest = 0
        self._peer_boot = max(boot, self._peer_boot)

    async def run(self) -> None:
        connection = self._connect(self)
        try:
            while True:
                self._news.clear()
                if self._cursor >= self._acknowledged + len(self._waiting):
                    await self._news.wait()
                    continue
                try:
                    await connection.ready()
                    if parts := self._next_parts():
                        session, count = self._session, await connection.send(parts)
                        self._sent(session, parts[:count])
                except PortError:
                    await asyncio.sleep(PAUSE_S)
        finally:
            await connection.close()

    def said(self, pair: Pair, message: Have) -> None:
        """The other node says what it has."""
        self.peer_started(message.boot)
        if message.session != self._session:
            return
        while self._acknowledged < min(message.number, self._furthest) and self._waiting:
            self._acknowledged += 1
            self._waiting.popleft()
        self._cursor = self._acknowledged if message.again else max(self._cursor, self._acknowledged)
        self._news.set()

    def lost(self, pair: Pair, parts: Sequence[Part], reason: str) -> None:
        """The connection broke."""
        self._cursor = self._acknowledged
        self._news.set()

    def silent(self) -> None:
        if self.silent_since is None:
            self.silent_since = self._now()

    def back(self) -> None:
        self.silent_since = None

    def _next_parts(self) -> list[Part]:
        begin = self._cursor - self._acknowledged
        following = islice(self._waiting, begin, begin + MOST_AT_ONCE)
        return [
            Part(self._session, self._cursor + place, more, data)
            for place, (more, data) in enumerate(following, 1)
        ]

    def _sent(self, session: int, parts: Sequence[Part]) -> None:
        if parts and session == self._session:
            self._cursor = max(self._cursor, parts[-1].number)
            self._furthest = max(self._furthest, self._cursor)
