"""Holds packets until a route for them is found, bounded in number and in age."""

from collections import deque
from typing import Generic, NamedTuple, TypeVar

P = TypeVar("P")


class Held(NamedTuple, Generic[P]):
    packet: P
    until_ns: int


class HeldPackets(Generic[P]):
    """All packets have the same time limit, so the first of each destination is its oldest."""

    def __init__(self, limit: int, age_ns: int) -> None:
        self._limit = limit
        self._age_ns = age_ns
        self._held: dict[int, deque[Held[P]]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, destination: int, packet: P, now_ns: int) -> list[P]:
        """Returns the oldest packet if it had to be dropped to make room."""
        pushed_out = []
        if self._count == self._limit:
            oldest = min(self._held, key=lambda each: self._held[each][0].until_ns)
            pushed_out.append(self._pop_first(oldest))
        self._held.setdefault(destination, deque()).append(Held(packet, now_ns + self._age_ns))
        self._count += 1
        return pushed_out

    def take(self, destination: int) -> list[P]:
        held = self._held.pop(destination, ())
        self._count -= len(held)
        return [each.packet for each in held]

    def take_expired(self, now_ns: int) -> list[P]:
        expired = []
        for destination in list(self._held):
            while destination in self._held and self._held[destination][0].until_ns <= now_ns:
                expired.append(self._pop_first(destination))
        return expired

    def next_expiry_ns(self) -> int | None:
        return min((held[0].until_ns for held in self._held.values()), default=None)

    def _pop_first(self, destination: int) -> P:
        held = self._held[destination]
        packet = held.popleft().packet
        self._count -= 1
        if not held:
            del self._held[destination]
        return packet
