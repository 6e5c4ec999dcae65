"""The stream to an operator that may move, in place of a dispatcher: keeps tuples until no host needs them.

It has no route to choose. A source whose stream is full drops what it captures next: what waits has its
number already.
"""

import asyncio
from collections.abc import Callable, Sequence

from node_agent.apps.dataflow.delivery.tuple_recorder import TupleRecorder
from node_agent.apps.dataflow.events import QueueSample
from node_agent.apps.dataflow.model.tuples import StreamTuple
from node_agent.apps.dataflow.moving.post import Post, Roles
from node_agent.apps.dataflow.moving.tuples import pack
from node_agent.apps.dataflow.switching.route import Hop
from node_agent.migration.live.messages import Effect, Message, Sent
from node_agent.migration.live.neighbours import Upstream
from node_agent.migration.live.values import Limits
from node_agent.model.telemetry import Event


class MovingStream:
    def __init__(self, roles: Roles, post: Post, record: Callable[[Event], None], limits: Limits) -> None:
        self.downstream = roles.moving.operator
        self._replica, self._to = roles.upstream.id, roles.replica.id
        self._recorder = TupleRecorder(self._replica, record)
        self._post, self._limits = post, limits
        self._upstream = Upstream(self._replica, roles.moving.hosts[0], roles.coordinator, limits)
        self._held = 0
        """Bytes that are kept."""
        self._moved = asyncio.Event()
        post.attach(self.downstream, self._replica, self._take, self._put)

    @property
    def room(self) -> int:
        if self._held >= self._limits.bytes:
            return min(0, self._limits.items - self.waiting())
        return self._limits.items - self.waiting()

    def has_room(self) -> bool:
        return self.room > 0

    def waiting(self) -> int:
        return len(self._upstream.kept)

    async def put(self, item: StreamTuple) -> None:
        await self._wait_for(1)
        self.extend((item,))

    def wants(self) -> bool:
        """Whether what is sent now is worked on next: what is not trimmed yet is about one savepoint's."""
        return self.waiting() < 2 * self._limits.grain and self.has_room()

    async def wait_until_it_wants(self) -> None:
        while not self.wants():
            self._moved.clear()
            await self._moved.wait()

    async def within_bounds(self) -> None:
        await self._wait_for(0)

    def extend(self, items: Sequence[StreamTuple]) -> None:
        for item in items:
            payload = pack(item)
            self._held += len(payload)
            self._send(self._upstream.emit(payload))
        self._recorder.sent(self._to, items)

    def offer(self, items: Sequence[StreamTuple]) -> None:
        room = max(0, self.room)
        self.extend(items[:room])
        for item in items[room:]:
            self._recorder.dropped(item, "source_buffer_full", self.downstream)

    def steer(self, hop: Hop | None) -> None:
        pass

    def silent(self) -> tuple[str, ...]:
        return ()

    def sample(self) -> QueueSample:
        return QueueSample(self._replica, f"output:{self.downstream}", self.waiting())

    async def run(self) -> None:
        """Sending is done as tuples come."""

    async def close(self) -> None:
        pass

    def _send(self, effects: Sequence[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Sent):
                self._post.send(self.downstream, self._replica, effect.to, effect.message)

    async def _take(self, sender: str, message: Message) -> None:
        self._put(sender, message)

    def _put(self, sender: str, message: Message) -> None:
        self._send(self._upstream.receive(sender, message))
        self._held = sum(len(item.payload) for item in self._upstream.kept)
        self._moved.set()

    async def _wait_for(self, room: int) -> None:
        while self.room < room:
            self._moved.clear()
            await self._moved.wait()
