"""The wire format between replicas: a length, a tag, a msgpack header, and raw payloads if it announces any.

Pure: values in, bytes out, and back. A reader knows how much to wait for, refuses what is too large before it
allocates anything, and knows the header to be genuine before it reads on.
"""

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import TypeVar

import msgspec

from node_agent.model.tuples import StreamTuple
from node_agent.transport.messages import Data, Greeting, Header, Outside, PassedOn

MAX_GREETING = 1024
MAX_HEADER = 1024 * 1024
MAX_PAYLOAD = 16 * 1024 * 1024
INLINE = 4096
"""Items up to this size are copied into the header: cheaper than to handle their payloads one by one."""
ITEM_OVERHEAD = 64
"""About what an item takes in the header, besides its payload."""

_PRELUDE = struct.Struct("!I")
PRELUDE_SIZE = _PRELUDE.size

_encode = msgspec.msgpack.Encoder().encode
_greetings: msgspec.msgpack.Decoder[Greeting] = msgspec.msgpack.Decoder(Greeting)
_headers: msgspec.msgpack.Decoder[Header] = msgspec.msgpack.Decoder(Header)

T = TypeVar("T")


class FrameError(Exception):
    """The peer sent, or was to be sent, something that is not a frame of this protocol."""


def encode(header: Greeting | Header) -> tuple[bytes, bytes]:
    """Prelude and header."""
    head = _encode(header)
    limit = MAX_GREETING if isinstance(header, Greeting) else MAX_HEADER
    if len(head) > limit:
        raise FrameError(f"a header of {len(head)} bytes exceeds the limit of {limit}")
    return _PRELUDE.pack(len(head)), head


def decode_prelude(prelude: bytes, limit: int = MAX_HEADER) -> int:
    """The length of the header."""
    (size,) = _PRELUDE.unpack(prelude)
    if not 0 < size <= limit:
        raise FrameError(f"the peer announced a header of {size} bytes")
    return int(size)


def decode_greeting(header: bytes) -> Greeting:
    return _decode(_greetings, header)


def decode_header(header: bytes) -> Header:
    return _decode(_headers, header)


def _decode(decoder: "msgspec.msgpack.Decoder[T]", header: bytes) -> T:
    try:
        return decoder.decode(header)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise FrameError(f"the peer sent a malformed header: {error}") from error


def fitting(sizes: Sequence[int], most_items: int, most_bytes: int) -> int:
    """How many of the first items make a frame within these bounds; at least one."""
    total = 0
    for count, size in enumerate(islice(sizes, most_items)):
        total += size + ITEM_OVERHEAD
        if total > most_bytes:
            return max(count, 1)
    return max(min(len(sizes), most_items), 1)


def pack(
    items: Sequence[StreamTuple],
    sizes: Sequence[int],
    digest: Callable[[bytes], bytes],
    floors: Mapping[str, int] = {},
    passed_on: PassedOn | None = None,
) -> tuple[Data, list[bytes]]:
    """The header and the payloads to follow it. ``sizes``: of the items, for who counts has them at hand."""
    large = [index for index, size in enumerate(sizes) if size > INLINE]
    if not large:
        return Data(items, (), floors, passed_on), []
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
    if not all(each.item < len(header.items) for each in header.outside):
        raise FrameError("the peer announced a payload of no item")
    return [each.size for each in header.outside]


def unpack(data: Data, payloads: Sequence[bytes]) -> Sequence[StreamTuple]:
    """``payloads``: read as ``outside_sizes`` says, and of the digests announced."""
    if not data.outside:
        return data.items
    items = list(data.items)
    for (index, _, _), payload in zip(data.outside, payloads, strict=True):
        item = items[index]
        items[index] = msgspec.structs.replace(item, payloads=(*item.payloads, payload))
    return items


def _refuse_too_much(outside: Sequence[Outside]) -> None:
    total = sum(each.size for each in outside)
    if total > MAX_PAYLOAD:
        raise FrameError(f"payloads of {total} bytes exceed the limit of {MAX_PAYLOAD}")
