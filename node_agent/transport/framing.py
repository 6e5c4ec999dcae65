"""The format of a frame: length and tag, a msgpack header, and the attachments that the header announces.

Pure: values in, bytes out, and back. A reader knows how many bytes to wait for, refuses what is too large
before it allocates memory, and checks the tag before it decodes the header (``connection``).
"""

import struct
from collections.abc import Sequence

import msgspec

from node_agent.transport.errors import FrameError

MAX_HEADER = 1024 * 1024
MAX_ATTACHED = 16 * 1024 * 1024
"""Bytes of all attachments of a frame together."""
MAX_ATTACHMENTS = 8192
"""Attachments of a frame: the header has an entry for each."""
ITEM_OVERHEAD = 64
"""About how many bytes an item takes in the header, besides its own size."""

_PRELUDE = struct.Struct("!I")
PRELUDE_SIZE = _PRELUDE.size

_encode = msgspec.msgpack.Encoder().encode


def encode(header: object) -> tuple[bytes, bytes]:
    """Return prelude and header. Raise FrameError if the header is too long."""
    head = _encode(header)
    if len(head) > MAX_HEADER:
        raise FrameError(f"a header of {len(head)} bytes exceeds the limit of {MAX_HEADER}")
    return _PRELUDE.pack(len(head)), head


def decode_prelude(prelude: bytes, limit: int = MAX_HEADER) -> int:
    """Return the length of the header. Raise FrameError if it exceeds ``limit``."""
    (size,) = _PRELUDE.unpack(prelude)
    if not 0 < size <= limit:
        raise FrameError(f"the peer announced a header of {size} bytes")
    return int(size)


def check_attachments(sizes: Sequence[int]) -> None:
    """Raise FrameError if these are too many attachments for one frame, or too many bytes."""
    if len(sizes) > MAX_ATTACHMENTS:
        raise FrameError(f"{len(sizes)} payloads exceed the limit of {MAX_ATTACHMENTS}")
    total = sum(sizes)
    if total > MAX_ATTACHED:
        raise FrameError(f"payloads of {total} bytes exceed the limit of {MAX_ATTACHED}")


def fitting(sizes: Sequence[int], most_bytes: int) -> int:
    """Return how many of the first items make a frame of about ``most_bytes``; at least one.

    ``sizes`` are those of the items. The header may be too long all the same: ``encode`` finds out.
    """
    if sum(sizes) + ITEM_OVERHEAD * len(sizes) <= most_bytes:
        return max(len(sizes), 1)
    total = 0
    for count, size in enumerate(sizes):
        total += size + ITEM_OVERHEAD
        if total > most_bytes:
            return max(count, 1)
    return max(len(sizes), 1)
