"""The keys of a run: every two nodes share a key that no third node knows.

The orchestrator draws one secret per run and derives from it a key for every pair of nodes. It gives a node
only the keys of its own pairs. So a node that is taken over can speak for itself, but not as another node,
and what somebody recorded in one run is worthless in the next.
"""

import hmac
from collections.abc import Iterable, Mapping

KEY_SIZE = 32


def derive(key: bytes, purpose: bytes, about: bytes = b"") -> bytes:
    """Return a key for one purpose. ``purpose`` has no zero byte."""
    return hmac.digest(key, b"rove " + purpose + b"\0" + about, "sha256")


def keys_of(secret: bytes, run: str, node: str, nodes: Iterable[str]) -> dict[str, bytes]:
    """Return the keys that ``node`` is given: the one that it shares with each of ``nodes``, by name."""
    return {other: _pair_key(secret, run, node, other) for other in nodes}


def app_keys(keys: Mapping[str, bytes], app: str) -> dict[str, bytes]:
    """Return a node's ``keys`` for one application: messages of one application are not valid in another."""
    return {node: derive(key, b"application", app.encode()) for node, key in keys.items()}


def _pair_key(secret: bytes, run: str, one: str, other: str) -> bytes:
    first, second = sorted((one, other))
    parts = (part.encode() for part in (run, first, second))
    return derive(secret, b"pair", b"".join(len(part).to_bytes(4, "big") + part for part in parts))
