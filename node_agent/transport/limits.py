"""How much a connection may hold and how long the other end may be silent."""

from typing import Annotated

from msgspec import Meta, Struct

Count = Annotated[int, Meta(ge=1)]


class ConnectionLimits(Struct, frozen=True):
    """The limits of every connection. The defaults are small: items that wait long are stale.

    ``window_items``, ``window_bytes``: how much a sender may have under way, that is, sent and not yet taken
    by the receiving application; the last item may exceed the bytes. ``batch_items``, ``batch_bytes``: how
    much goes into one frame. ``dead_after``: a peer that is silent for so many seconds counts as dead.
    """

    window_items: Count = 32
    window_bytes: Count = 64 * 1024
    batch_items: Count = 256
    batch_bytes: Annotated[int, Meta(ge=1, le=512 * 1024)] = 64 * 1024
    dead_after: Annotated[float, Meta(gt=0)] = 2.0
