"""The item of a stream, t = (τ, p) of the paper: its position, its payloads, and the position before it.

Streams are dense: an item that an operator filters out travels on without payload, so a missing item is a
lost one. Each item names the position before it, so neighbours can be recognised.
"""

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta, Struct

from node_agent.model.checked import Whole

PAYLOAD_OVERHEAD = 64
MOST_PAYLOADS = 8192
"""The limit for one item, which a frame can carry. An item with more could not be sent on."""


# Items are many and never part of a cycle: the garbage collector need not look at them.
class StreamTuple(Struct, frozen=True, array_like=True, gc=False):
    """Position ``tau`` of the stream ``origin``; the position before it is ``prev``, 0 at the start.

    ``origin``: the id of the source replica that made the stream, or the name of the operator whose windows
    or joins did. ``born_ns``: when the newest input of the item was captured; it never falls along a stream.
    ``prev_born_ns``: that of the position before. ``payloads``: none for a hole, several if an operator
    returned several. The ``last`` item only says that the stream has ended, and has no payload.
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
        """Returns the same position with ``payloads``; the item itself if they are its own."""
        if payloads is self.payloads:
            return self
        return StreamTuple(
            self.origin, self.tau, self.prev, self.born_ns, self.prev_born_ns, payloads, self.last
        )


def sizes_of(items: Sequence[StreamTuple]) -> list[int]:
    """Returns the bytes of payload of each item."""
    try:  # fast path: usually each item has one payload
        return [len(only) for item in items for (only,) in (item.payloads,)]
    except ValueError:  # holes, or several payloads
        return [len(held[0]) if len(held := item.payloads) == 1 else item.size for item in items]


def weight_of(items: Sequence[StreamTuple]) -> int:
    """Returns about how many bytes of memory the payloads take, with the overhead of each, which dominates if
    an item has thousands of small ones.
    """
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
    """An item as an operator knows it: the input that it arrived over, its stream, and its position."""

    upstream: str
    origin: str
    tau: int
