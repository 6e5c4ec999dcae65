"""The wire format between replicas: a length, a tag, a msgpack header, and raw payloads if it announces any.

Pure: values in, bytes out, and back. A reader knows how much to wait for, refuses what is too large before it
allocates anything, and knows the header to be genuine before it decodes it. What fits into a frame is asked
here (``unfit``, ``fitting``) before anything is to be sent.
"""

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from node_agent.apps.dataflow.model.tuples import MOST_PAYLOADS, StreamTuple
from node_agent.model.checked import Checked, Refused
from node_agent.transport.messages import Data, Header, Outside, PassedOn

MAX_HEADER = 1024 * 1024
MAX_PAYLOAD = 16 * 1024 * 1024
MAX_PAYLOADS = MOST_PAYLOADS
"""Payloads of all items of a frame: each may need a place in the header of its own."""
INLINE = 4096
"""Items up to this size are copied into the header: cheaper than to handle their payloads one by one."""
ITEM_OVERHEAD = 64
"""About what an item takes in the header, besides its payload."""

_PRELUDE = struct.Struct("!I")
PRELUDE_SIZE = _PRELUDE.size

_encode = msgspec.msgpack.Encoder().encode
_headers: Checked[Header] = Checked(Header, MAX_HEADER, "msgpack")


class FrameError(Exception):
    """The peer sent, or was to be sent, something that is not a frame of this protocol.

    ``reason`` is the word that it is counted by.
    """

    reason = "frame"


class TooLarge(FrameError):
    """No frame carries the item that was to be sent, alone."""

    reason = "too_large"


class Stranger(FrameError):
    """The peer names no key of this run."""

    reason = "stranger"


class Forged(FrameError):
    """The tag is not one that this frame could have."""

    reason = "forged"


class Impossible(FrameError):
    """A node of the run says what it cannot know, or what cannot be."""

    reason = "impossible"


def encode(header: Header) -> tuple[bytes, bytes]:
    """Prelude and header."""
    head = _encode(header)
    if len(head) > MAX_HEADER:
        raise FrameError(f"a header of {len(head)} bytes exceeds the limit of {MAX_HEADER}")
    return _PRELUDE.pack(len(head)), head


def decode_prelude(prelude: bytes, limit: int = MAX_HEADER) -> int:
    """The length of the header."""
    (size,) = _PRELUDE.unpack(prelude)
    if not 0 < size <= limit:
        raise FrameError(f"the peer announced a header of {size} bytes")
    return int(size)


def decode_header(header: bytes) -> Header:
    """Raises FrameError, whatever the bytes are."""
    try:
        return _headers.decode(header)
    except Refused as error:
        raise FrameError(f"the peer sent a malformed header: {error}") from error


def unfit(payloads: Sequence[object]) -> str | None:
    """Why no frame can carry an item with these payloads, as an operator made them; None if one can."""
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


def fitting(sizes: Sequence[int], most_bytes: int) -> int:
    """How many of the first items make a frame of about so many bytes; at least one. ``sizes``: of the items.

    Items of very many payloads may be too much for the header all the same.
    """
    if sum(sizes) + ITEM_OVERHEAD * len(sizes) <= most_bytes:
        return max(len(sizes), 1)
    total = 0
    for count, size in enumerate(sizes):
        total += size + ITEM_OVERHEAD
        if total > most_bytes:
            return max(count, 1)
    return max(len(sizes), 1)


def pack(
    items: Sequence[StreamTuple],
    sizes: Sequence[int],
    digest: Callable[[bytes], bytes],
    floors: Mapping[str, int] = {},
    passed_on: PassedOn | None = None,
) -> tuple[Data, list[bytes]]:
    """The header and the payloads to follow it. ``sizes``: of the items, for who counts has them at hand."""
    if not sizes or max(sizes) <= INLINE:
        return Data(items, (), floors, passed_on), []
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
    _refuse_too_much(outside)
    return Data(listed, outside, floors, passed_on), payloads


def outside_sizes(header: Header) -> Iterable[int]:
    """The lengths of the payloads to read after ``header``."""
    if not isinstance(header, Data) or not header.outside:
        return ()
    _refuse_too_much(header.outside)
    items = header.items
    for index, _, _ in header.outside:
        if index >= len(items):
            raise FrameError("the peer announced a payload of no item")
        if items[index].payloads:
            raise FrameError("the peer announced payloads of an item that has some already")
    return [size for _, size, _ in header.outside]


def unpack(data: Data, payloads: Sequence[bytes]) -> Sequence[StreamTuple]:
    """``payloads``: read as ``outside_sizes`` says, and of the digests announced."""
    if not data.outside:
        return data.items
    items = list(data.items)
    parts: dict[int, list[bytes]] = {}
    for (index, _, _), payload in zip(data.outside, payloads, strict=True):
        parts.setdefault(index, []).append(payload)
    for index, found in parts.items():
        items[index] = items[index].with_payloads(tuple(found))
    return items


def _refuse_too_much(outside: Sequence[Outside]) -> None:
    if len(outside) > MAX_PAYLOADS:
        raise FrameError(f"{len(outside)} payloads exceed the limit of {MAX_PAYLOADS}")
    total = sum([size for _, size, _ in outside])
    if total > MAX_PAYLOAD:
        raise FrameError(f"payloads of {total} bytes exceed the limit of {MAX_PAYLOAD}")
