"""Numbers what a source captures: every item gets a position, even if there is no room for it.

If there is not even room for a hole, the position is only counted, and the hole is made later. So every lost
item has a position by which it can be named.
"""

from node_agent.apps.dataflow.model.tuples import StreamTuple

Payloads = tuple[bytes, ...]


class Emission:
    """``position`` is that of the newest item, whether it was put into the stream or skipped."""

    def __init__(self, origin: str) -> None:
        self.origin = origin
        self.position = 0
        self._put = 0
        self._born_ns = 0
        self._to_end = False

    @property
    def behind(self) -> bool:
        """Whether skipped positions, or the end, must be put into the stream before anything new."""
        return self._put < self.position or self._to_end

    def next(self, payloads: Payloads, born_ns: int) -> StreamTuple:
        """Returns the next item of the stream. Must not be called while ``behind``."""
        self.position += 1
        return self._following(payloads, max(born_ns, self._born_ns))

    def skip(self, payloads: Payloads, born_ns: int) -> StreamTuple:
        """Counts a position without putting it into the stream. Returns the item that it would have been."""
        self.position += 1
        return StreamTuple(self.origin, self.position, self.position - 1, born_ns, self._born_ns, payloads)

    def end(self) -> None:
        self.position += 1
        self._to_end = True

    def catch_up(self, room: int) -> list[StreamTuple]:
        """Returns the holes of skipped positions, as many as there is room for, and then the end if it is
        due.

        The end needs no room, because it comes only once.
        """
        until = self.position - 1 if self._to_end else self.position
        holes = [self._following((), self._born_ns) for _ in range(min(room, until - self._put))]
        if self._to_end and self._put == until:
            self._to_end = False
            holes.append(self._following((), self._born_ns, last=True))
        return holes

    def _following(self, payloads: Payloads, born_ns: int, last: bool = False) -> StreamTuple:
        before, self._put = self._put, self._put + 1
        before_ns, self._born_ns = self._born_ns, born_ns
        return StreamTuple(self.origin, self._put, before, born_ns, before_ns, payloads, last)
