"""The item of a stream, t = (τ, p) of seed 000: a position, what stands there, and what stood before it.

Streams are dense: an item that an operator has filtered out travels on without payload, so that what is
missing was lost. Any two neighbours are known to be neighbours, because each names the one before it.
"""

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta, Struct

from node_agent.model.checked import Whole

PAYLOAD_OVERHEAD = 64
MOST_PAYLOADS = 8192
"""Of one item: what a frame carries. Who sends more sends what nobody could send on."""


# It cannot be part of a cycle, and there are many: spare them the garbage collector.
class StreamTuple(Struct, frozen=True, array_like=True, gc=False):
    """Position ``tau`` of the stream ``origin``; the position before it is ``prev``, 0 at the start.

    ``origin`` is the id of the source replica that made the stream, or the name of the operator whose windows
    or joins did. ``born_ns`` is when the newest of what it was made of was captured; it never falls along a
    stream, and ``prev_born_ns`` is that of the position before. ``payloads``: none for a hole, several for
    what was multiplied. The ``last`` item only says that the stream has ended: it has no payload.
    """

    origin: str
    tau: Whole
    prev: Whole
    born_ns: Whole
    prev_born_ns: Whole
    payloads: Annotated[tuple[bytes, ...], Meta(max_length=MOST_PAYLOADS)] = ()
    last: bool = False

    @property
    def size(self) -> int:
        """Bytes of payload."""
        return sum(map(len, self.payloads))

    def with_payloads(self, payloads: tuple[bytes, ...]) -> "StreamTuple":
        """The same position with ``payloads`` there; the same item if they are its own."""
        if payloads is self.payloads:
            return self
        return StreamTuple(
            self.origin, self.tau, self.prev, self.born_ns, self.prev_born_ns, payloads, self.last
        )


def sizes_of(items: Sequence[StreamTuple]) -> list[int]:
    """Bytes of payload of each."""
    try:  # one payload an item is the common case, and this is on the way of every tuple
        return [len(only) for item in items for (only,) in (item.payloads,)]
    except ValueError:  # holes, or several
        return [len(held[0]) if len(held := item.payloads) == 1 else item.size for item in items]


def weight_of(items: Sequence[StreamTuple]) -> int:
    """About the bytes of memory that the payloads of all take: each has its own overhead, which is most of it
    where an item has thousands of a few bytes."""
    try:
        return sum([len(only) for item in items for (only,) in (item.payloads,)])
    except ValueError:
        return sum(
            [
                len(held[0]) if len(held := item.payloads) == 1 else item.size + PAYLOAD_OVERHEAD * len(held)
                for item in items
            ]
        )


class Position(Struct, frozen=True, order=True):
    """An item as an operator knows it: by the input it came over, its stream, and its place there."""

    upstream: str
    origin: str
    tau: int
