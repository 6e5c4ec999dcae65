"""The wire format between replicas: length-prefixed frames of a msgpack header and a raw payload.

Pure: bytes in, values out. A prelude of fixed size gives the lengths of header and payload, so that a
reader knows how much to wait for and refuses what is too large before it allocates anything.
"""

import struct
from typing import Annotated

import msgspec

from node_agent.model.tuples import StreamTuple

PROTOCOL_VERSION = 1
MAX_HEADER = 4 * 1024
MAX_PAYLOAD = 16 * 1024 * 1024

_PRELUDE = struct.Struct("!HI")
PRELUDE_SIZE = _PRELUDE.size


class FrameError(Exception):
    """The peer sent, or was to be sent, something that is not a frame of this protocol."""


class Hello(msgspec.Struct, frozen=True, array_like=True, tag="hello"):
    """First frame of a connection, from the upstream replica ``sender`` to ``receiver``."""

    version: int
    run: str
    sender: str
    receiver: str


class Welcome(msgspec.Struct, frozen=True, array_like=True, tag="welcome"):
    """The answer to a hello that was accepted."""


class Data(msgspec.Struct, frozen=True, array_like=True, tag="data"):
    """Everything of a tuple but its payload, which follows the header."""

    origin: str
    tau: Annotated[int, msgspec.Meta(ge=0)]
    born_ns: Annotated[int, msgspec.Meta(ge=0)]


Header = Hello | Welcome | Data

_encode = msgspec.msgpack.Encoder().encode
_decoder: msgspec.msgpack.Decoder[Header] = msgspec.msgpack.Decoder(Header)


def encode(header: Header, payload: bytes = b"") -> bytes:
    head = _encode(header)
    if len(head) > MAX_HEADER:
        raise FrameError(f"a header of {len(head)} bytes exceeds the limit of {MAX_HEADER}")
    if len(payload) > MAX_PAYLOAD:
        raise FrameError(f"a payload of {len(payload)} bytes exceeds the limit of {MAX_PAYLOAD}")
    return b"".join((_PRELUDE.pack(len(head), len(payload)), head, payload))


def encode_tuple(item: StreamTuple) -> bytes:
    return encode(Data(item.origin, item.tau, item.born_ns), item.payload)


def decode_prelude(prelude: bytes) -> tuple[int, int]:
    """Lengths of the header and of the payload that follow."""
    header, payload = _PRELUDE.unpack(prelude)
    if not 0 < header <= MAX_HEADER:
        raise FrameError(f"the peer announced a header of {header} bytes")
    if payload > MAX_PAYLOAD:
        raise FrameError(f"the peer announced a payload of {payload} bytes")
    return header, payload


def decode_header(header: bytes) -> Header:
    try:
        return _decoder.decode(header)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise FrameError(f"the peer sent a malformed header: {error}") from error


def decode_tuple(header: Header, payload: bytes) -> StreamTuple:
    if not isinstance(header, Data):
        raise FrameError(f"the peer sent a {type(header).__name__} frame where a tuple was due")
    return StreamTuple(header.origin, header.tau, header.born_ns, payload)
