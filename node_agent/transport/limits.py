"""How much a link may hold and how long it may be silent."""

from typing import Annotated

from msgspec import Meta, Struct

Count = Annotated[int, Meta(ge=1)]


class LinkLimits(Struct, frozen=True):
    """Short by default, as the other queues are: what waits longer is stale when it arrives.

    ``window_items``, ``window_bytes``: what a receiver lets a sender have under way, that is sent and not yet
    taken by the replica; of the bytes, the last item may exceed them. ``batch_items``, ``batch_bytes``: what
    goes into one frame. ``dead_after``: seconds of silence after which the other end is taken for dead.
    """

    window_items: Count = 32
    window_bytes: Count = 64 * 1024
    batch_items: Count = 256
    batch_bytes: Annotated[int, Meta(ge=1, le=512 * 1024)] = 64 * 1024
    dead_after: Annotated[float, Meta(gt=0)] = 2.0
