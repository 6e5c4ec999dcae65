"""Credit of a link: how much may be under way, kept at both ends. Pure.

An item is under way from when it is sent until the receiving replica has taken it. Items are taken in order,
so that a count says all.
"""

from collections import deque
from collections.abc import Sequence

from node_agent.apps.dataflow.model.tuples import StreamTuple
from node_agent.transport.framing import FrameError


class Allowance:
    """At the sender."""

    def __init__(self, items: int, bytes: int) -> None:
        self._items = items
        self._bytes = bytes
        self._taken = 0
        self._under_way: deque[tuple[StreamTuple, int]] = deque()
        self._size = 0

    @property
    def left(self) -> int:
        """Items that may be sent now, as far as their sizes allow it."""
        return self._items - len(self._under_way) if self._size < self._bytes else 0

    @property
    def bytes_left(self) -> int:
        return self._bytes - self._size

    def sent(self, items: Sequence[StreamTuple], sizes: Sequence[int]) -> None:
        self._under_way.extend(zip(items, sizes, strict=True))
        self._size += sum(sizes)

    def taken(self, count: int) -> None:
        """``count`` since the connection began."""
        newly = count - self._taken
        if not 0 <= newly <= len(self._under_way):
            raise FrameError(f"the peer says it took {count} items, which cannot be")
        self._taken = count
        for _ in range(newly):
            self._size -= self._under_way.popleft()[1]

    def under_way(self) -> list[StreamTuple]:
        return [item for item, _ in self._under_way]


class Grant:
    """At the receiver."""

    def __init__(self, items: int, bytes: int) -> None:
        self._items = items
        self._bytes = bytes
        self.waiting = 0
        self._size = 0
        self._told = 0
        self._told_size = 0
        self.taken = 0
        self._taken_size = 0

    def came(self, sizes: Sequence[int]) -> None:
        if not sizes:
            raise FrameError("the peer sent a batch of nothing")
        self.waiting += len(sizes)
        self._size += sum(sizes)
        if self.waiting > self._items or self._size - sizes[-1] >= self._bytes:
            raise FrameError("the peer sent more than it was allowed to")

    def took(self, sizes: Sequence[int]) -> bool:
        """Whether it is time to tell the sender."""
        size = sum(sizes)
        self.waiting -= len(sizes)
        self._size -= size
        self.taken += len(sizes)
        self._taken_size += size
        news = self.taken - self._told
        return 4 * news >= self._items or 4 * (self._taken_size - self._told_size) >= self._bytes

    def told(self) -> None:
        self._told = self.taken
        self._told_size = self._taken_size
