"""Who belongs to a run: frames carry a tag that only holders of the run's key can make.

A hello proves the key but not that it is fresh; from both nonces then come the keys of this one connection,
one for each direction. The number of the frame is part of its tag: what was heard on the air can neither be
changed nor said again, left out or in another order, on this connection or another. Large payloads are
covered by their digests in the header.
"""

import hmac
from hashlib import sha256

import msgspec
from msgspec import Struct

from node_agent.transport.messages import Hello

TAG_SIZE = 16
NONCE_SIZE = 16
KEY_SIZE = 32
MIN_KEY = 16


class Credentials(Struct, frozen=True):
    """Of a run. ``key`` is never to be printed."""

    run: str
    key: bytes

    def __repr__(self) -> str:
        return f"Credentials(run={self.run!r})"


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
    """Tags datagrams of a run. They may be lost and overtake: whether one is news is told by what it says."""

    def __init__(self, credentials: Credentials) -> None:
        key = _derive(credentials.key, b"datagram", credentials.run.encode())
        self._mac = hmac.new(key, digestmod="sha256")

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


def hello_seal(key: bytes) -> Seal:
    return Seal(_derive(key, b"hello", b""))


def session_seals(key: bytes, hello: Hello, nonce: bytes) -> tuple[Seal, Seal]:
    """For what the opener sends, and for what the acceptor does, whose nonce is ``nonce``."""
    about = msgspec.msgpack.encode((hello, nonce))
    return Seal(_derive(key, b"opener", about)), Seal(_derive(key, b"acceptor", about))


def _derive(key: bytes, purpose: bytes, about: bytes) -> bytes:
    return hmac.digest(key, b"rove link " + purpose + b"\0" + about, "sha256")
