"""Credit of a connection: how much may be under way, counted at both ends. Pure.

An item is under way from when it is sent until the receiving application has taken it. Items are taken in
order, so one count is enough.
"""

from collections import deque
from collections.abc import Sequence
from typing import Generic

from node_agent.transport.codec import ItemT
from node_agent.transport.errors import FrameError


class Allowance(Generic[ItemT]):
    """The credit as the sender counts it."""

    def __init__(self, items: int, bytes: int) -> None:
        self._items = items
        self._bytes = bytes
        self._taken = 0
        self._under_way: deque[tuple[ItemT, int]] = deque()
        self._size = 0

    @property
    def left(self) -> int:
        """How many items may be sent now, as far as their sizes allow it."""
        return self._items - len(self._under_way) if self._size < self._bytes else 0

    @property
    def bytes_left(self) -> int:
        return self._bytes - self._size

    def sent(self, items: Sequence[ItemT], sizes: Sequence[int]) -> None:
        self._under_way.extend(zip(items, sizes, strict=True))
        self._size += sum(sizes)

    def taken(self, count: int) -> None:
        """The receiver says it took ``count`` items since the connection began. Raise FrameError if false."""
        newly = count - self._taken
        if not 0 <= newly <= len(self._under_way):
            raise FrameError(f"the peer says it took {count} items, which cannot be")
        self._taken = count
        for _ in range(newly):
            self._size -= self._under_way.popleft()[1]

    def under_way(self) -> list[ItemT]:
        return [item for item, _ in self._under_way]


class Grant:
    """The credit as the receiver counts it."""

    def __init__(self, items: int, bytes: int) -> None:
        self._items = items
        self._bytes = bytes
        self.waiting = 0
        self._size = 0
        self._reported = 0
        self._reported_size = 0
        self.taken = 0
        self._taken_size = 0

    def arrived(self, sizes: Sequence[int]) -> None:
        """Raise FrameError if the sender exceeds its credit."""
        if not sizes:
            raise FrameError("the peer sent a batch of nothing")
        self.waiting += len(sizes)
        self._size += sum(sizes)
        if self.waiting > self._items or self._size - sizes[-1] >= self._bytes:
            raise FrameError("the peer sent more than it was allowed to")

    def take(self, sizes: Sequence[int]) -> bool:
        """The application has taken items of these sizes. Return whether the sender should hear of it now."""
        size = sum(sizes)
        self.waiting -= len(sizes)
        self._size -= size
        self.taken += len(sizes)
        self._taken_size += size
        news = self.taken - self._reported
        return 4 * news >= self._items or 4 * (self._taken_size - self._reported_size) >= self._bytes

    def reported(self) -> None:
        """The sender has been sent the count ``taken``."""
        self._reported = self.taken
        self._reported_size = self._taken_size
