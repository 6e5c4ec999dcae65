"""Stores what originators announce as theirs, until it expires: aliases (MID) or networks (HNA).

When full, it evicts the originators that were heard least often.
"""

from collections.abc import Hashable, Iterable, Iterator
from typing import Generic, TypeVar

from node_agent.olsr.eviction import least_credible

MAX_ORIGINATORS = 2048
MAX_PER_ORIGINATOR = 256
MAX_ITEMS = 2048

T = TypeVar("T", bound=Hashable)


class Announced(Generic[T]):
    def __init__(self) -> None:
        self.changes = 0
        self.next_expiry = 1 << 62
        self.evicted = 0
        self._until: dict[int, dict[T, int]] = {}
        self._times: dict[int, int] = {}
        """How often each originator was heard."""
        self._items = 0

    def update(self, originator: int, items: Iterable[T], until: int) -> None:
        known = self._until.get(originator)
        if known is None:
            if len(self._until) >= MAX_ORIGINATORS:
                self._make_room()
            known = self._until[originator] = {}
        self._times[originator] = self._times.get(originator, 0) + 1
        for item in items:
            if item not in known:
                if len(known) >= MAX_PER_ORIGINATOR:
                    self.evicted += 1
                    break
                if self._items >= MAX_ITEMS:
                    self._make_room(but=originator)
                self._items += 1
                self.changes += 1
            known[item] = until
        self.next_expiry = min(self.next_expiry, until)

    def expire(self, now: int) -> None:
        self.next_expiry = 1 << 62
        for originator, known in list(self._until.items()):
            for item in [item for item, until in known.items() if until <= now]:
                del known[item]
                self._items -= 1
                self.changes += 1
            if not known:
                del self._until[originator], self._times[originator]
                continue
            self.next_expiry = min(self.next_expiry, *known.values())

    def _make_room(self, but: int | None = None) -> None:
        others = [originator for originator in self._until if originator != but]
        for originator in least_credible(others, self._times.__getitem__):
            self._items -= len(self._until.pop(originator))
            del self._times[originator]
            self.evicted += 1
        self.changes += 1

    def of(self, originator: int) -> Iterable[T]:
        return self._until.get(originator, ())

    def each(self) -> Iterator[tuple[int, dict[T, int]]]:
        """Returns originators with their announcements, and until when each is valid."""
        yield from self._until.items()
