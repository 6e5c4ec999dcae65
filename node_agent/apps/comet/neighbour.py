"""Sends to one neighbour whenever there is a contact: what waits, and after it how complete streams are.

Nobody tells a node when a contact begins. It tries to connect all the time, and notices the end of a contact
by silence. After a connection broke, everything that was not acknowledged is sent again.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from itertools import islice

from node_agent.apps.comet.machine import Machine
from node_agent.apps.comet.messages import Also, Ask, Carry
from node_agent.apps.comet.telling import Teller
from node_agent.apps.comet.wire import Have, Item, item_of, size_of
from node_agent.ports import PortError
from node_agent.transport.messages import Pair
from node_agent.transport.outgoing import OutgoingConnection

MOST_AT_ONCE = 64
PAUSE_S = 0.05
"""After a failed attempt, besides the pause that the connection makes itself."""

Sender = OutgoingConnection[Item, None, Have]


class Sent:
    """Counts what was sent to the neighbour."""

    def __init__(self) -> None:
        self.instances = self.references = self.requests = self.marks = self.bytes = self.connections = 0

    def add(self, item: Item) -> None:
        self.bytes += size_of(item)
        match item.message:
            case Carry():
                self.instances += 1
            case Also():
                self.references += 1
            case Ask():
                self.requests += 1
            case _:
                self.marks += 1


class Neighbour:
    """``now``: the time in seconds, once everything that occurred here until then is in the machine.
    ``acknowledged`` is called with the number that the neighbour has; ``met`` with whether there is a
    connection, when that changes.
    """

    def __init__(
        self,
        machine: Machine,
        name: str,
        now: Callable[[], float],
        acknowledged: Callable[[str, int], None],
        met: Callable[[str, bool], None],
    ) -> None:
        self.name = name
        self.sent = Sent()
        self._machine = machine
        self._now = now
        self._acknowledged = acknowledged
        self._met = met
        self._cursor = machine.state.outboxes[name].acknowledged
        """The last number that was sent over the present connection."""
        self._teller = Teller(machine, name)
        self._news = asyncio.Event()
        self._fresh = True

    async def run(self, connection: Sender) -> None:
        while True:
            try:
                await connection.ready()
                if self._fresh:
                    self._fresh = False
                    self.sent.connections += 1
                    self._met(self.name, True)
                await self._send(connection)
            except PortError:
                await asyncio.sleep(PAUSE_S)

    def wake(self) -> None:
        """Something may have come to wait."""
        self._news.set()

    def lost(self, pair: Pair, items: object, reason: str) -> None:
        """The connection broke."""
        self._rewind()
        if not self._fresh:
            self._met(self.name, False)
        self._fresh = True
        self._teller = Teller(self._machine, self.name)
        self._news.set()

    def said(self, pair: Pair, message: Have) -> None:
        """The neighbour says what it has."""
        self._acknowledged(self.name, message.number)
        if message.again:
            self._rewind()
            self._teller = Teller(self._machine, self.name)
        self._news.set()

    def _rewind(self) -> None:
        self._cursor = self._machine.state.outboxes[self.name].acknowledged

    async def _send(self, connection: Sender) -> None:
        """Sends the next items, or waits until there are some."""
        self._news.clear()
        items = self._next_items()
        if not items:
            now = self._now()
            due = self._teller.due(now)
            if due > now:
                with suppress(TimeoutError):
                    async with asyncio.timeout(due - now + 1e-6):
                        await self._news.wait()
                return
            items = self._next_items() or [Item(0, self._cursor, self._teller.told(now))]
        count = await connection.send(items)
        for item in items[:count]:
            self.sent.add(item)
            self._cursor = max(self._cursor, item.number)

    def _next_items(self) -> list[Item]:
        outbox = self._machine.state.outboxes[self.name]
        limits = self._machine.plan.limits
        following = [each for each in outbox.waiting if each[0] > self._cursor]
        previous = max((number for number, _ in outbox.waiting if number <= self._cursor), default=0)
        previous = max(previous, outbox.acknowledged)
        items = []
        for number, message in islice(following, MOST_AT_ONCE):
            items.append(item_of(number, previous, message, limits))
            previous = number
        return items
