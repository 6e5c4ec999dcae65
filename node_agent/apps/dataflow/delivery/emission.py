"""The stream that a source makes: every item captured gets a position, whether there is room for it or not.

What there is no room for, not even for a hole, is skipped: its place is only counted, and the hole is made
once there is room again. So nothing is lost without a place that it can be named by.
"""

from node_agent.apps.dataflow.model.tuples import StreamTuple

Payloads = tuple[bytes, ...]


class Emission:
    """``position``: of the newest item, put into the stream or skipped."""

    def __init__(self, origin: str) -> None:
        self.origin = origin
        self.position = 0
        self._put = 0
        self._born_ns = 0
        self._to_end = False

    @property
    def behind(self) -> bool:
        """Whether there is something to put into the stream before anything new."""
        return self._put < self.position or self._to_end

    def next(self, payloads: Payloads, born_ns: int) -> StreamTuple:
        """To be put into the stream now; only if it is not ``behind``."""
        self.position += 1
        return self._following(payloads, max(born_ns, self._born_ns))

    def skip(self, payloads: Payloads, born_ns: int) -> StreamTuple:
        """What might have been."""
        self.position += 1
        return StreamTuple(self.origin, self.position, self.position - 1, born_ns, self._born_ns, payloads)

    def end(self) -> None:
        self.position += 1
        self._to_end = True

    def catch_up(self, room: int) -> list[StreamTuple]:
        """The holes of what was skipped, as far as there is room, and then the end, if it has come to that.

        The end needs no room: it comes once.
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
