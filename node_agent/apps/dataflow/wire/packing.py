"""Puts tuples into frames and takes them out again. Pure.

Small payloads are part of the header, large ones are attachments. ``unfit`` says before anything is sent
whether a frame can carry a tuple at all.
"""

from collections.abc import Sequence

import msgspec

from node_agent.apps.dataflow.model.tuples import MOST_PAYLOADS, StreamTuple
from node_agent.apps.dataflow.wire.messages import Data, DataDetails, Outside
from node_agent.transport.codec import Attachment, Digest
from node_agent.transport.errors import FrameError
from node_agent.transport.framing import MAX_ATTACHED, MAX_ATTACHMENTS, check_attachments

MAX_PAYLOAD = MAX_ATTACHED
"""Bytes of all payloads of a tuple together."""
MAX_PAYLOADS = min(MOST_PAYLOADS, MAX_ATTACHMENTS)
INLINE = 4096
"""Items up to this size are copied into the header: that is cheaper than to handle their payloads singly."""

_NO_DETAILS = DataDetails()


def unfit(payloads: Sequence[object]) -> str | None:
    """Return why no frame can carry an item with these payloads of an operator; None if one can."""
    if len(payloads) == 1 and type(payloads[0]) is bytes and len(payloads[0]) <= MAX_PAYLOAD:
        return None  # by far the most are like that
    if len(payloads) > MAX_PAYLOADS:
        return f"{len(payloads)} payloads are more than a frame carries, {MAX_PAYLOADS}"
    size = 0
    for payload in payloads:
        if not isinstance(payload, bytes):
            return f"a payload is of type {type(payload).__name__}, not bytes"
        size += len(payload)
    if size > MAX_PAYLOAD:
        return f"payloads of {size} bytes are more than a frame carries, {MAX_PAYLOAD}"
    return None


def pack(
    items: Sequence[StreamTuple], sizes: Sequence[int], digest: Digest, details: DataDetails | None = None
) -> tuple[Data, Sequence[bytes]]:
    """Return the header and the payloads that follow it. ``sizes`` are those of the items.

    Raise FrameError if the items do not fit into a frame.
    """
    floors, passed_on = details or _NO_DETAILS
    if not sizes or max(sizes) <= INLINE:
        return Data(items, (), floors, passed_on), ()
    large = [index for index, size in enumerate(sizes) if size > INLINE]
    if (count := sum([len(items[index].payloads) for index in large])) > MAX_PAYLOADS:
        raise FrameError(f"{count} payloads exceed the limit of {MAX_PAYLOADS}")
    listed = list(items)
    payloads: list[bytes] = []
    outside: list[Outside] = []
    for index in large:
        for payload in items[index].payloads:
            outside.append(Outside(index, len(payload), digest(payload)))
            payloads.append(payload)
        listed[index] = msgspec.structs.replace(items[index], payloads=())
    check_attachments([len(payload) for payload in payloads])
    return Data(listed, outside, floors, passed_on), payloads


def attachments_of(data: Data) -> Sequence[Attachment]:
    """Return the payloads that follow ``data``. Raise FrameError if they are not of its items."""
    if not data.outside:
        return ()
    items = data.items
    for index, _, _ in data.outside:
        if index >= len(items):
            raise FrameError("the peer announced a payload of no item")
        if items[index].payloads:
            raise FrameError("the peer announced payloads of an item that has some already")
    return [(size, digest) for _, size, digest in data.outside]


def unpack(data: Data, payloads: Sequence[bytes]) -> Data:
    """Return ``data`` with ``payloads``, as ``attachments_of`` lists them, in their items."""
    items = list(data.items)
    parts: dict[int, list[bytes]] = {}
    for (index, _, _), payload in zip(data.outside, payloads, strict=True):
        parts.setdefault(index, []).append(payload)
    for index, found in parts.items():
        items[index] = items[index].with_payloads(tuple(found))
    return Data(items, (), data.floors, data.passed_on)
