"""The first frame that each end of a connection sends: a proof of fixed size, then the greeting.

The proof names the key by its id, and holds a nonce and a tag. So a reader finds the key and checks the tag
before it parses the greeting, and reads nothing more from a peer that has no key of the run.
"""

import struct
from collections.abc import Mapping
from typing import NamedTuple, TypeVar

import msgspec

from node_agent.model.checked import Checked, Refused
from node_agent.ports import Stream
from node_agent.transport.authentication import (
    ID_SIZE,
    NONCE_SIZE,
    TAG_SIZE,
    DirectedKey,
    Seal,
    hello_seal,
    session_seals,
)
from node_agent.transport.errors import Forged, FrameError, Stranger
from node_agent.transport.messages import Hello, Welcome

MAX_GREETING = 1024


_HEAD = struct.Struct(f"!H{ID_SIZE}s{NONCE_SIZE}s")
PROOF_SIZE = _HEAD.size + TAG_SIZE

_encode = msgspec.msgpack.Encoder().encode
_hellos: Checked[Hello] = Checked(Hello, MAX_GREETING, "msgpack")
_welcomes: Checked[Welcome] = Checked(Welcome, MAX_GREETING, "msgpack")


T = TypeVar("T")


class Introduced(NamedTuple):
    """A hello whose tag is genuine; ``frame`` is all of it as it was sent."""

    key: DirectedKey
    hello: Hello
    frame: bytes


class Welcomed(NamedTuple):
    """A genuine welcome, and the seals of the connection that it opens."""

    welcome: Welcome
    sending: Seal
    receiving: Seal


class _Frame(NamedTuple):
    head: bytes
    tag: bytes
    body: bytes
    nonce: bytes


def hello_frame(key: DirectedKey, hello: Hello, nonce: bytes) -> bytes:
    return _sealed(key, _encode(hello), nonce, hello_seal(key))


def welcome_frame(key: DirectedKey, welcome: Welcome, nonce: bytes, sending: Seal) -> bytes:
    """``sending``: the acceptor's seal of this connection, made with ``nonce``."""
    return _sealed(key, _encode(welcome), nonce, sending)


async def read_hello(stream: Stream, keys: Mapping[bytes, DirectedKey]) -> Introduced:
    """Raise Stranger, Forged, FrameError, or what the stream raises."""
    key, frame = await _read(stream, keys)
    if not hello_seal(key).genuine(frame.head, frame.body, frame.tag):
        raise Forged("the peer does not hold the key it names")
    return Introduced(key, _decoded(_hellos, frame.body), frame.head + frame.tag + frame.body)


async def read_welcome(stream: Stream, key: DirectedKey, hello: bytes) -> Welcomed:
    """Read the answer to the frame ``hello``, which was sent with ``key``. Raise as ``read_hello`` does."""
    _, frame = await _read(stream, {key.id: key})
    sending, receiving = session_seals(key, hello, frame.nonce)
    if not receiving.genuine(frame.head, frame.body, frame.tag):
        raise Forged("the peer does not hold the key of this pair of nodes")
    return Welcomed(_decoded(_welcomes, frame.body), sending, receiving)


def _sealed(key: DirectedKey, body: bytes, nonce: bytes, seal: Seal) -> bytes:
    if len(body) > MAX_GREETING:
        raise FrameError(f"a greeting of {len(body)} bytes exceeds the limit of {MAX_GREETING}")
    head = _HEAD.pack(len(body), key.id, nonce)
    return head + seal.tag(head, body) + body


async def _read(stream: Stream, keys: Mapping[bytes, DirectedKey]) -> tuple[DirectedKey, _Frame]:
    proof = await stream.read_exactly(PROOF_SIZE)
    head, tag = proof[: _HEAD.size], proof[_HEAD.size :]
    size, key_id, nonce = _HEAD.unpack(head)
    key = keys.get(key_id)
    if key is None:
        raise Stranger("the peer names no key that this node shares with another")
    if not 0 < size <= MAX_GREETING:
        raise FrameError(f"the peer announced a greeting of {size} bytes")
    return key, _Frame(head, tag, await stream.read_exactly(size), nonce)


def _decoded(decoder: "Checked[T]", body: bytes) -> T:
    try:
        return decoder.decode(body)
    except Refused as error:
        raise FrameError(f"the peer sent a malformed greeting: {error}") from error
