"""The receiving half of a stream: puts segments in order, within a window."""

from bisect import bisect_left


class Reassembly:
    def __init__(self, capacity: int) -> None:
        self.next = 0
        """Sequence number of the first byte not yet received in order."""
        self._capacity = capacity
        self.in_order = bytearray()
        """What was received and not read."""
        self._ahead: list[tuple[int, bytes]] = []

    @property
    def window(self) -> int:
        left = self._capacity - len(self.in_order)
        return left if left > 0 else 0

    @property
    def has_gap(self) -> bool:
        return bool(self._ahead)

    def add(self, sequence: int, data: bytes) -> None:
        """Stores new data that fits the window. The window's far edge
        never moves back: only reading moves it."""
        if sequence > self.next:
            data = data[: max(self.next + self.window - sequence, 0)]
            place = bisect_left(self._ahead, (sequence, data))
            if data and self._ahead[place : place + 1] != [(sequence, data)]:
                self._ahead.insert(place, (sequence, data))
            return
        if sequence == self.next and len(data) <= self._capacity - len(self.in_order):  # the usual case
            self.in_order += data
            self.next += len(data)
        else:
            self._append(sequence, data)
        while self._ahead and self._ahead[0][0] <= self.next:
            self._append(*self._ahead.pop(0))

    def take(self, limit: int) -> bytes:
        data = bytes(self.in_order[:limit])
        del self.in_order[:limit]
        return data

    def discard(self) -> bool:
        """Drops unread data. Returns True if there was any."""
        had = bool(self.in_order)
        self.in_order.clear()
        return had

    def _append(self, sequence: int, data: bytes) -> None:
        skip = self.next - sequence
        fresh = data[skip : skip + self.window]
        self.in_order += fresh
        self.next += len(fresh)
