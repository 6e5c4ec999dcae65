"""Sends a replica's output to the downstream replica that the router has chosen (the paper, figure 3).

One dispatcher serves one downstream operator. It has a bounded buffer, a tuple in hand, and connections to
the replicas used so far. Best effort: it sends a tuple again as long as the tuple is in hand. What a
connection has taken and not delivered when it breaks is dropped. Tuples that gather while the connection is
busy go along with the tuple in hand.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

from msgspec import Struct

from node_agent.apps.dataflow.delivery.tuple_recorder import TupleRecorder
from node_agent.apps.dataflow.events import QueueSample
from node_agent.apps.dataflow.model.tuples import StreamTuple
from node_agent.apps.dataflow.switching.route import Hop
from node_agent.apps.dataflow.wire.codec import OnLost, TupleSender
from node_agent.model.telemetry import Event
from node_agent.ports import PortError
from node_agent.transport.errors import TooLarge
from node_agent.transport.messages import Pair

MOST_AT_ONCE, MOST_BYTES_AT_ONCE = 1024, 512 * 1024
"""About what a connection takes at once; what it does not take goes back into the buffer."""


class Limits(Struct, frozen=True):
    """Queue lengths in tuples, times in seconds.

    Queues are short, as in the paper's prototype: what waits longer is stale when it arrives, and what is not
    on a connection yet can still take another route. ``send_timeout``: how long a send may block once the
    route leads elsewhere. ``retry_age``: how long after its first failed send a tuple is retried.
    ``sources_wait`` for room; otherwise their oldest tuple is dropped, because a camera does not wait.
    """

    input_queue: int = 1
    output_buffer: int = 2
    send_timeout: float = 1.0
    retry_age: float = 30.0
    sources_wait: bool = False


class _Attempt(NamedTuple):
    to: str
    started: float
    deadline: asyncio.Timeout


class Dispatcher:
    def __init__(
        self,
        replica: str,
        downstream: str,
        make_sender: Callable[[str, OnLost], TupleSender],
        record: Callable[[Event], None],
        limits: Limits,
    ) -> None:
        self.downstream = downstream
        self._replica = replica
        self._recorder = TupleRecorder(replica, record)
        self._make_sender = make_sender
        self._limits = limits
        self._buffer: deque[StreamTuple] = deque()
        self._filled = asyncio.Event()
        self._room = asyncio.Event()
        self._senders: dict[str, TupleSender] = {}
        self._hop: Hop | None = None
        self._has_route = asyncio.Event()
        self._attempt: _Attempt | None = None

    async def put(self, item: StreamTuple) -> None:
        """Waits for room, then appends ``item``."""
        await self.wait_for_room()
        self.extend((item,))

    @property
    def room(self) -> int:
        """How many more tuples fit; negative if more were appended than fit."""
        return self._limits.output_buffer - len(self._buffer)

    def has_room(self) -> bool:
        return self.room > 0

    async def wait_for_room(self) -> None:
        await self._wait_for(1)

    def wants(self) -> bool:
        """Whether a tuple that is appended now leaves next: there is a route, and nothing waits."""
        return self._hop is not None and not self._buffer

    async def wait_until_it_wants(self) -> None:
        while not self.wants():
            await self._target()
            await self._wait_for(self._limits.output_buffer)

    async def within_bounds(self) -> None:
        """Waits while the buffer holds more than its limit: this pushes back on the operator and upstream."""
        await self._wait_for(0)

    def extend(self, items: Sequence[StreamTuple]) -> None:
        """Appends ``items``, whether there is room or not."""
        self._buffer.extend(items)
        self._filled.set()

    def offer(self, items: Sequence[StreamTuple]) -> None:
        """Appends a source's items. Drops the oldest ones to make room: a source cannot be pushed back."""
        self.extend(items)
        while self.room < 0:
            self._drop(self._buffer.popleft(), "source_buffer_full")

    def steer(self, hop: Hop | None) -> None:
        """Sends where ``hop`` says from now on; None: holds everything until there is a route again."""
        self._hop = hop
        if hop is None:
            self._has_route.clear()
        else:
            self._has_route.set()
            self._seek_others(hop)
        if self._attempt is not None and not self._attempt.deadline.expired():
            self._attempt.deadline.reschedule(self._give_up_at(self._attempt))

    async def run(self) -> None:
        while True:
            # While there is no route, tuples stay in the buffer, where a source can drop its oldest.
            await self._target()
            while not self._buffer:
                self._filled.clear()
                await self._filled.wait()
            await self._dispatch(self._next())

    async def close(self) -> None:
        for sender in self._senders.values():
            await sender.close()

    def waiting(self) -> int:
        return len(self._buffer)

    def silent(self) -> tuple[str, ...]:
        """Returns the downstream replicas that do not answer."""
        return tuple(to for to, sender in self._senders.items() if not sender.answers)

    def sample(self) -> QueueSample:
        return QueueSample(self._replica, f"output:{self.downstream}", self.waiting())

    async def _dispatch(self, item: StreamTuple) -> None:
        loop = asyncio.get_running_loop()
        give_up_at: float | None = None
        while True:
            to = (await self._target()).pick(item.tau)
            if give_up_at is not None and loop.time() >= give_up_at:
                self._drop(item, "expired")
                return
            try:
                taken = await self._send(item, to)
            except TooLarge as error:
                self._drop(item, error.reason)
                return
            if taken:
                self._recorder.sent(to, taken)
                return
            if give_up_at is None:
                give_up_at = loop.time() + self._limits.retry_age
            await asyncio.sleep(0)  # gives a dead connection time to notice it

    async def _target(self) -> Hop:
        while self._hop is None:
            await self._has_route.wait()
        return self._hop

    async def _send(self, item: StreamTuple, to: str) -> list[StreamTuple]:
        """Sends ``item`` and what can go along with it. Returns what the connection took; empty if it
        failed.
        """
        sender = self._senders.get(to)
        if sender is None:
            sender = self._senders[to] = self._make_sender(to, self._lost)
        batch, taken = [item], 0
        try:
            async with asyncio.timeout(None) as deadline:
                self._attempt = _Attempt(to, asyncio.get_running_loop().time(), deadline)
                await sender.ready()
                batch += self._companions(to)
                taken = await sender.send(batch)
        except (PortError, TimeoutError):
            pass
        finally:
            self._attempt = None
            self._buffer.extendleft(reversed(batch[max(taken, 1) :]))
        return batch[:taken]

    def _companions(self, to: str) -> list[StreamTuple]:
        """Takes from the buffer what goes to the same replica, as much as a connection can take at once."""
        hop, buffer, size = self._hop, self._buffer, 0
        companions: list[StreamTuple] = []
        if hop is None or to not in hop.replicas():
            return companions
        for _ in range(min(len(buffer), MOST_AT_ONCE)):
            if size >= MOST_BYTES_AT_ONCE or (hop.shares and hop.pick(buffer[0].tau) != to):
                break
            item = buffer.popleft()
            size += len(item.payloads[0]) if item.payloads else 0
            companions.append(item)
        if companions:
            self._room.set()
        return companions

    def _seek_others(self, hop: Hop) -> None:
        """If the route leads to a silent replica, nobody who could be used answers: tries the others now."""
        silent = self.silent()
        if any(to in silent for to in hop.replicas()):
            for to in silent:
                if to not in hop.replicas():
                    self._senders[to].hurry()

    def _next(self) -> StreamTuple:
        self._room.set()
        return self._buffer.popleft()

    def _give_up_at(self, attempt: _Attempt) -> float | None:
        # Without any route there is no better replica, and this connection may recover.
        if self._hop is None or attempt.to in self._hop.replicas():
            return None
        # Does not wait for a silent replica: its silence is why the route leads elsewhere.
        timeout = self._limits.send_timeout if self._senders[attempt.to].answers else 0.0
        return max(asyncio.get_running_loop().time(), attempt.started + timeout)

    async def _wait_for(self, room: int) -> None:
        while self.room < room:
            self._room.clear()
            await self._room.wait()

    def _lost(self, pair: Pair, items: Sequence[StreamTuple], reason: str) -> None:
        for item in items:
            self._drop(item, "link_failed")

    def _drop(self, item: StreamTuple, reason: str) -> None:
        if not item.last:
            self._recorder.dropped(item, reason, self.downstream)
