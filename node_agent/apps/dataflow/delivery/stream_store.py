"""Stores the items that a replica keeps of one stream, as parcels: neighbouring items that are sent together.

A batch stays one parcel as long as all its items have the same state; it is cut where their states differ. So
storing, sending and acknowledging cost as much as for a batch, not for each item. A spill may hold the
payloads.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from enum import IntEnum

from msgspec import Struct
from msgspec.structs import replace

from node_agent.apps.dataflow.delivery.spill import Spill, SpillFull
from node_agent.apps.dataflow.model.tuples import StreamTuple, weight_of


class State(IntEnum):
    """The state of a parcel: waits to be sent, in flight to a replica, taken by it, or removed from the
    store.
    """

    WAITING = 0
    IN_FLIGHT = 1
    TAKEN = 2
    GONE = 3


class Parcel(Struct, eq=False):
    """Neighbouring items of one stream. ``to`` and ``at``: where and when they were sent last.

    ``holders``: replicas that have taken them and, as far as is known, still have them. ``holes``: how many
    of the items were dropped and left a hole. While ``spilled`` is set, the items here have no payloads; the
    spill stores them under that handle.
    """

    items: list[StreamTuple]
    size: int
    state: State = State.WAITING
    to: str = ""
    at: float = 0.0
    holders: tuple[str, ...] = ()
    spilled: int | None = None
    holes: int = 0

    @property
    def first(self) -> int:
        return self.items[0].tau

    @property
    def last(self) -> int:
        return self.items[-1].tau

    @property
    def sent(self) -> bool:
        return self.state is State.IN_FLIGHT or self.state is State.TAKEN


class StreamStore:
    """The parcels of one stream, which never overlap.

    ``items`` and ``bytes`` count the payloads in memory. ``positions`` counts all positions, also those of
    holes and of spilled items.
    """

    def __init__(self, spill: Spill | None = None) -> None:
        self.items = 0
        self.bytes = 0
        self.positions = 0
        self._spill = spill
        self._parcels: list[Parcel] = []
        self._firsts: list[int] = []
        self._in_memory: list[int] = []

    def __iter__(self) -> Iterator[Parcel]:
        return iter(self._parcels)

    def __len__(self) -> int:
        return len(self._parcels)

    @property
    def last(self) -> int:
        """The highest position in the store; 0 if it is empty."""
        return self._parcels[-1].last if self._parcels else 0

    def overlaps(self, first: int, last: int) -> bool:
        begin, end = self._between(first, last)
        return begin < end

    def add(self, parcel: Parcel) -> None:
        self._insert(parcel)
        self.positions += len(parcel.items)
        self._count(parcel, 1)

    def overlapping(self, first: int, last: int) -> list[Parcel]:
        """Returns the parcels that have an item between ``first`` and ``last``."""
        begin, end = self._between(first, last)
        return self._parcels[begin:end]

    def remove(self, first: int, last: int) -> list[Parcel]:
        """Removes the parcels between ``first`` and ``last``, also from the spill. Returns them."""
        begin, end = self._between(first, last)
        taken = self._parcels[begin:end]
        del self._parcels[begin:end], self._firsts[begin:end]
        for parcel in taken:
            self.positions -= len(parcel.items)
            if parcel.spilled is None:
                self._count(parcel, -1)
            elif self._spill is not None:
                self._spill.free(parcel.spilled)
        return taken

    def cut(self, parcel: Parcel, before: int) -> Parcel:
        """Cuts ``parcel`` before its item number ``before``. The parcel keeps the first part; returns the
        rest.

        A spilled parcel is loaded, and both parts are spilled again.
        """
        was_spilled = parcel.spilled is not None
        self._load_from_spill(parcel)
        self._count(parcel, -1)
        rest = Parcel(parcel.items[before:], 0, parcel.state, parcel.to, parcel.at, parcel.holders)
        rest.size = weight_of(rest.items)
        parcel.size -= rest.size
        parcel.items = parcel.items[:before]
        if parcel.holes:
            parcel.holes, rest.holes = _empty(parcel.items), _empty(rest.items)
        self._insert(rest)
        for part in (parcel, rest):
            self._count(part, 1)
            if was_spilled:
                self.move_to_spill(part)
        return rest

    def in_memory(self) -> Iterator[Parcel]:
        """Yields the parcels whose payloads are in memory, the oldest first."""
        for first in self._in_memory:
            yield self._parcels[bisect_left(self._firsts, first)]

    def drop_payload(self, parcel: Parcel) -> StreamTuple:
        """Drops the first payload of ``parcel``, which must be in memory; a hole stays. Returns the dropped
        item.
        """
        at = next(at for at, item in enumerate(parcel.items) if item.payloads)
        dropped = parcel.items[at]
        self._count(parcel, -1)
        parcel.items = [*parcel.items[:at], replace(dropped, payloads=()), *parcel.items[at + 1 :]]
        parcel.size -= weight_of([dropped])
        parcel.holes += 1
        self._count(parcel, 1)
        return dropped

    def move_to_spill(self, parcel: Parcel) -> bool:
        """Moves the payloads to the spill. Returns False if there is no spill or it is full."""
        if self._spill is None or not parcel.size:
            return False
        try:
            parcel.spilled = self._spill.store([item.payloads for item in parcel.items])
        except SpillFull:
            return False
        self._count(parcel, -1)
        parcel.items = [replace(item, payloads=()) for item in parcel.items]
        return True

    def items_of(self, parcel: Parcel) -> list[StreamTuple]:
        """Returns the items of ``parcel`` with their payloads, from memory or from the spill."""
        if parcel.spilled is None or self._spill is None:
            return parcel.items
        payloads = self._spill.load(parcel.spilled)
        return [replace(item, payloads=p) for item, p in zip(parcel.items, payloads, strict=True)]

    def _load_from_spill(self, parcel: Parcel) -> None:
        if parcel.spilled is not None and self._spill is not None:
            parcel.items = self.items_of(parcel)
            self._spill.free(parcel.spilled)
            parcel.spilled = None
            self._count(parcel, 1)

    def _insert(self, parcel: Parcel) -> None:
        at = bisect_left(self._firsts, parcel.first)
        self._parcels.insert(at, parcel)
        self._firsts.insert(at, parcel.first)

    def _count(self, parcel: Parcel, sign: int) -> None:
        """Counts what takes memory; holes take next to none."""
        if not parcel.size:
            return
        self.items += sign * (len(parcel.items) - parcel.holes)
        self.bytes += sign * parcel.size
        if sign > 0:
            insort(self._in_memory, parcel.first)
        else:
            del self._in_memory[bisect_left(self._in_memory, parcel.first)]

    def _between(self, first: int, last: int) -> tuple[int, int]:
        begin = bisect_right(self._firsts, first) - 1
        if begin < 0 or self._parcels[begin].last < first:
            begin += 1
        return begin, bisect_right(self._firsts, last)


def _empty(items: list[StreamTuple]) -> int:
    return sum([not item.payloads for item in items])
