"""Collects what the AODV core decides: messages to send, packets to forward or drop."""

from heapq import heappop, heappush
from typing import Generic, NamedTuple, TypeVar

from node_agent.aodv import wire
from node_agent.aodv.counters import Counters, Reason
from node_agent.aodv.wire import Message

P = TypeVar("P")


class Send(NamedTuple):
    """A control message for one neighbour, or for all of them (``to`` is None)."""

    data: bytes
    to: int | None
    ttl: int


class Forward(NamedTuple, Generic[P]):
    """A held packet whose route has been found."""

    packet: P
    next_hop: int


class Drop(NamedTuple, Generic[P]):
    packet: P
    reason: Reason


Action = Send | Forward[P] | Drop[P]


class Outbox(Generic[P]):
    """Collects actions and counts them."""

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self._actions: list[Action[P]] = []
        self._later: list[tuple[int, int, Message, int]] = []
        self._order = 0

    def send(self, message: Message, to: int | None, ttl: int, forwarded: bool = False) -> None:
        data = wire.encode(message)
        self._counters.sent(wire.kind_of(message), len(data), forwarded)
        self._actions.append(Send(data, to, ttl))

    def pass_on_later(self, message: Message, ttl: int, when_ns: int) -> None:
        """Sends ``message`` to all neighbours at ``when_ns``. Messages of one moment keep their order."""
        self._order += 1
        heappush(self._later, (when_ns, self._order, message, ttl))

    def due(self, now_ns: int) -> None:
        while self._later and self._later[0][0] <= now_ns:
            _, _, message, ttl = heappop(self._later)
            self.send(message, None, ttl, forwarded=True)

    def next_due_ns(self) -> int | None:
        return self._later[0][0] if self._later else None

    def forward(self, packet: P, next_hop: int) -> None:
        self._actions.append(Forward(packet, next_hop))

    def drop(self, packet: P, reason: Reason) -> None:
        self._counters.drops[reason] += 1
        self._actions.append(Drop(packet, reason))

    def take(self) -> list[Action[P]]:
        taken, self._actions = self._actions, []
        return taken
