"""Who belongs to a run, and which node speaks: frames carry a tag that only the two nodes of a pair can make.

Every two nodes share a key (``keys``). From it comes one key for each direction and purpose, with an id that
names it on the wire: a receiver finds the key by the id and checks the tag before it parses anything. A hello
proves the key but not that it is fresh; from both nonces then come the keys of this one connection. The
number of the frame is part of its tag: what was heard on the air can neither be changed nor said again, left
out or in another order, on this connection or another. Large payloads are covered by their digests in the
header.
"""

import hmac
from collections.abc import Mapping
from hashlib import sha256
from typing import Literal

from msgspec import Struct

from node_agent.transport.keys import derive

TAG_SIZE = 16
NONCE_SIZE = 16
ID_SIZE = 8
MIN_KEY = 16

Purpose = Literal["connection", "datagram"]


class Way(Struct, frozen=True):
    """From one node to another, for one purpose; ``node`` is the other one. ``key`` is never to be printed.

    ``id`` names the key to who holds it, and tells nothing to others.
    """

    node: str
    id: bytes
    key: bytes

    def __repr__(self) -> str:
        return f"Way(node={self.node!r}, id={self.id.hex()})"


class Credentials(Struct, frozen=True):
    """Of one node in a run. ``keys``: what it shares with each node, see ``keys``; never to be printed."""

    run: str
    node: str
    keys: Mapping[str, bytes]

    def __repr__(self) -> str:
        return f"Credentials(run={self.run!r}, node={self.node!r})"

    def to(self, node: str, purpose: Purpose) -> Way:
        """For what this node says to ``node``."""
        return self._way(purpose, node, self.node, node)

    def incoming(self, purpose: Purpose) -> dict[bytes, Way]:
        """For what other nodes say to this one, by the ids of the keys."""
        ways = (self._way(purpose, node, node, self.node) for node in self.keys)
        return {way.id: way for way in ways}

    def _way(self, purpose: Purpose, other: str, sender: str, receiver: str) -> Way:
        names = (name.encode() for name in (self.run, sender, receiver))
        about = b"".join(len(name).to_bytes(4, "big") + name for name in names)
        key = derive(self.keys[other], purpose.encode(), about)
        return Way(other, derive(key, b"id")[:ID_SIZE], key)


class Seal:
    """Tags the frames of one direction, in order. HMAC-SHA256, for most processors have SHA-256 built in."""

    def __init__(self, key: bytes) -> None:
        self._mac = hmac.new(key, digestmod="sha256")
        self._number = 0

    def tag(self, prelude: bytes, header: bytes) -> bytes:
        mac = self._mac.copy()
        mac.update(self._number.to_bytes(8, "big") + prelude)
        mac.update(header)
        self._number += 1
        return mac.digest()[:TAG_SIZE]

    def genuine(self, prelude: bytes, header: bytes, tag: bytes) -> bool:
        return hmac.compare_digest(self.tag(prelude, header), tag)


class Stamp:
    """Tags datagrams. They may be lost and overtake: whether one is news is told by what it says."""

    def __init__(self, way: Way) -> None:
        self._mac = hmac.new(way.key, digestmod="sha256")

    def tag(self, data: bytes) -> bytes:
        mac = self._mac.copy()
        mac.update(data)
        return mac.digest()[:TAG_SIZE]

    def genuine(self, data: bytes, tag: bytes) -> bool:
        return hmac.compare_digest(self.tag(data), tag)


class Digests:
    """SHA-256 of payloads. Remembers the last few: what only passes through a node is hashed there once."""

    def __init__(self, most_bytes: int = 2 * 1024 * 1024) -> None:
        self._most = most_bytes
        self._size = 0
        self._known: dict[int, tuple[bytes, bytes]] = {}

    def of(self, payload: bytes) -> bytes:
        # By identity: as long as it is remembered here, no other object can have its place.
        known = self._known.get(id(payload))
        if known is not None:
            return known[1]
        digest = sha256(payload).digest()
        self._known[id(payload)] = payload, digest
        self._size += len(payload)
        while self._size > self._most:
            forgotten, _ = self._known.pop(next(iter(self._known)))
            self._size -= len(forgotten)
        return digest


def hello_seal(way: Way) -> Seal:
    return Seal(derive(way.key, b"hello"))


def session_seals(way: Way, hello: bytes, nonce: bytes) -> tuple[Seal, Seal]:
    """For what the opener sends, and for what the acceptor does, whose nonce is ``nonce``.

    ``hello``: the frame as it was sent, with the opener's nonce.
    """
    about = nonce + hello
    return Seal(derive(way.key, b"opener", about)), Seal(derive(way.key, b"acceptor", about))
