"""The first frame that each side of a connection sends: a proof of fixed size, then what it says.

The proof names the key by its id and has a nonce and a tag. So a reader finds the key and checks the tag
before it parses a byte of the rest, and reads no more of who has no key of the run.
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
    Seal,
    Way,
    hello_seal,
    session_seals,
)
from node_agent.transport.framing import Forged, FrameError, Stranger
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

    way: Way
    hello: Hello
    frame: bytes


class Welcomed(NamedTuple):
    welcome: Welcome
    sending: Seal
    receiving: Seal


class _Frame(NamedTuple):
    head: bytes
    tag: bytes
    body: bytes
    nonce: bytes


def hello_frame(way: Way, hello: Hello, nonce: bytes) -> bytes:
    return _sealed(way, _encode(hello), nonce, hello_seal(way))


def welcome_frame(way: Way, welcome: Welcome, nonce: bytes, sending: Seal) -> bytes:
    """``sending``: the acceptor's seal of this connection, made with ``nonce``."""
    return _sealed(way, _encode(welcome), nonce, sending)


async def read_hello(stream: Stream, ways: Mapping[bytes, Way]) -> Introduced:
    """Raises Stranger, Forged, FrameError, or what the stream raises."""
    way, frame = await _read(stream, ways)
    if not hello_seal(way).genuine(frame.head, frame.body, frame.tag):
        raise Forged("the peer does not hold the key it names")
    return Introduced(way, _decoded(_hellos, frame.body), frame.head + frame.tag + frame.body)


async def read_welcome(stream: Stream, way: Way, hello: bytes) -> Welcomed:
    """The answer to ``hello``, a frame that was sent by ``way``. Raises as ``read_hello`` does."""
    _, frame = await _read(stream, {way.id: way})
    sending, receiving = session_seals(way, hello, frame.nonce)
    if not receiving.genuine(frame.head, frame.body, frame.tag):
        raise Forged("the peer does not hold the key of this pair of nodes")
    return Welcomed(_decoded(_welcomes, frame.body), sending, receiving)


def _sealed(way: Way, body: bytes, nonce: bytes, seal: Seal) -> bytes:
    if len(body) > MAX_GREETING:
        raise FrameError(f"a greeting of {len(body)} bytes exceeds the limit of {MAX_GREETING}")
    head = _HEAD.pack(len(body), way.id, nonce)
    return head + seal.tag(head, body) + body


async def _read(stream: Stream, ways: Mapping[bytes, Way]) -> tuple[Way, _Frame]:
    proof = await stream.read_exactly(PROOF_SIZE)
    head, tag = proof[: _HEAD.size], proof[_HEAD.size :]
    size, key_id, nonce = _HEAD.unpack(head)
    way = ways.get(key_id)
    if way is None:
        raise Stranger("the peer names no key that this node shares with another")
    if not 0 < size <= MAX_GREETING:
        raise FrameError(f"the peer announced a greeting of {size} bytes")
    return way, _Frame(head, tag, await stream.read_exactly(size), nonce)


def _decoded(decoder: "Checked[T]", body: bytes) -> T:
    try:
        return decoder.decode(body)
    except Refused as error:
        raise FrameError(f"the peer sent a malformed greeting: {error}") from error
