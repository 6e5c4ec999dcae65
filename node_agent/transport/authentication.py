"""Proves which node speaks: every frame and datagram carries a tag that only two nodes can make.

Every two nodes share a key (``keys``). From it this module derives one key for each direction and purpose,
with an id that names it on the wire: a receiver finds the key by the id and checks the tag before it parses
anything. A hello proves that its sender has the key, but not that the hello is fresh; so the keys of one
connection are derived from random bytes of both ends. The number of a frame is part of its tag: nobody can
change, repeat, drop or reorder frames unnoticed, on this connection or another. The header holds the digests
of the attachments, so the tag covers them too.
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


class DirectedKey(Struct, frozen=True):
    """The key for one direction between this node and ``node``, for one purpose.

    ``id`` names the key on the wire and reveals nothing to others. ``secret`` must never be printed.
    """

    node: str
    id: bytes
    secret: bytes

    def __repr__(self) -> str:
        return f"DirectedKey(node={self.node!r}, id={self.id.hex()})"


class Credentials(Struct, frozen=True):
    """What a node proves its name with. ``keys``: the one it shares with each node; must never be printed."""

    run: str
    node: str
    keys: Mapping[str, bytes]

    def __repr__(self) -> str:
        return f"Credentials(run={self.run!r}, node={self.node!r})"

    def to(self, node: str, purpose: Purpose) -> DirectedKey:
        """Return the key for what this node sends to ``node``."""
        return self._directed(purpose, node, self.node, node)

    def incoming(self, purpose: Purpose) -> dict[bytes, DirectedKey]:
        """Return the keys for what other nodes send to this one, by their ids."""
        keys = (self._directed(purpose, node, node, self.node) for node in self.keys)
        return {key.id: key for key in keys}

    def _directed(self, purpose: Purpose, other: str, sender: str, receiver: str) -> DirectedKey:
        names = (name.encode() for name in (self.run, sender, receiver))
        about = b"".join(len(name).to_bytes(4, "big") + name for name in names)
        secret = derive(self.keys[other], purpose.encode(), about)
        return DirectedKey(other, derive(secret, b"id")[:ID_SIZE], secret)


class Seal:
    """Tags the frames of one direction, in order. Uses HMAC-SHA256: most processors have SHA-256 built in."""

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


class DatagramSeal:
    """Tags datagrams. They get lost and overtake each other, so they are not numbered: see ``datagrams``."""

    def __init__(self, key: DirectedKey) -> None:
        self._mac = hmac.new(key.secret, digestmod="sha256")

    def tag(self, data: bytes) -> bytes:
        mac = self._mac.copy()
        mac.update(data)
        return mac.digest()[:TAG_SIZE]

    def genuine(self, data: bytes, tag: bytes) -> bool:
        return hmac.compare_digest(self.tag(data), tag)


class Digests:
    """Computes the SHA-256 of attachments, and remembers the last few.

    One value serves all connections of an application: a node that passes an attachment on hashes it once.
    """

    def __init__(self, most_bytes: int = 2 * 1024 * 1024) -> None:
        self._most = most_bytes
        self._size = 0
        self._known: dict[int, tuple[bytes, bytes]] = {}

    def of(self, data: bytes) -> bytes:
        # By identity: as long as it is remembered here, no other object can have its place.
        known = self._known.get(id(data))
        if known is not None:
            return known[1]
        digest = sha256(data).digest()
        self._known[id(data)] = data, digest
        self._size += len(data)
        while self._size > self._most:
            forgotten, _ = self._known.pop(next(iter(self._known)))
            self._size -= len(forgotten)
        return digest


def hello_seal(key: DirectedKey) -> Seal:
    return Seal(derive(key.secret, b"hello"))


def session_seals(key: DirectedKey, hello: bytes, nonce: bytes) -> tuple[Seal, Seal]:
    """Return the seal of what the opener sends, and that of what the acceptor sends.

    ``hello``: the whole frame as it was sent, with the opener's nonce. ``nonce``: the acceptor's.
    """
    about = nonce + hello
    return Seal(derive(key.secret, b"opener", about)), Seal(derive(key.secret, b"acceptor", about))
