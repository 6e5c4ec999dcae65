"""The part of an operator's successor: takes each tuple once and in order, whichever host sends it."""

from collections.abc import Awaitable, Callable, Sequence

from node_agent.apps.dataflow.model.plan import Replica
from node_agent.apps.dataflow.model.tuples import StreamTuple
from node_agent.apps.dataflow.moving.actor import Actor
from node_agent.apps.dataflow.moving.post import Post, Roles
from node_agent.apps.dataflow.moving.tuples import unpack
from node_agent.migration.live.messages import Deliver, Effect, Message
from node_agent.migration.live.neighbours import Downstream

Receive = Callable[[str, Sequence[StreamTuple]], Awaitable[int]]
"""Takes the first of some tuples of a sender once there is room. Returns how many."""


class MovingSink(Actor):
    def __init__(self, roles: Roles, replica: Replica, post: Post, receive: Receive) -> None:
        super().__init__(post, roles.moving.operator, replica.id)
        self._from = roles.replica.id
        self._receive = receive
        self._downstream = Downstream(replica.id, roles.moving.hosts[0], roles.coordinator)

    def receive(self, sender: str, message: Message) -> Sequence[Effect]:
        return self._downstream.receive(sender, message)

    async def carry_out(self, effect: Effect) -> bool:
        if isinstance(effect, Deliver):
            items: Sequence[StreamTuple] = [unpack(payload) for payload in effect.payloads]
            while items:
                items = items[await self._receive(self._from, items) :]
        return True
