"""Seals what routing daemons tell their neighbours: a tag that only the group's key can make.

A seal is the time and a tag over the time, everything before it, and the sender's address. The time of each
sender grows with every packet, and it is not more than ``FRESH_S`` behind the receiver's: what was recorded
is refused when it is sent again, and a packet of one address cannot be sent from another.

The time is the group's, not a clock's: everybody takes the latest that a valid seal has shown, and lets it
run on. So clocks need not agree, and a node that was restarted with its clock far behind is refused only
until it has heard one packet of a neighbour. What remains possible: a packet can be sent again within
``FRESH_S`` to nodes that heard neither it nor a later one of its sender; if all nodes are restarted with
their clocks set back, old packets are new again; and whoever has the key can say anything.
"""

import hmac
from collections.abc import Callable
from struct import Struct
from typing import Literal

FRESH_S = 10.0
SIZE = 24
"""Bytes that a seal adds."""

_TAG_SIZE = 16
_TIME = Struct("!Q")
_ADDRESS = Struct("!I")
_FRESH_NS = int(FRESH_S * 1e9)
_MOST_NS = 1 << 62
_MOST_SENDERS = 4096


class Unsealed(Exception):
    """Refused. ``reason``: ``unauthenticated`` (no seal, or not by the key's owner) or ``replay``."""

    def __init__(self, reason: Literal["unauthenticated", "replay"]) -> None:
        super().__init__(reason)
        self.reason = reason


class Seal:
    """``protocol`` keeps one protocol's packets from being taken for another's. ``clock_ns`` may be any clock
    that outlives a restart; it may jump."""

    def __init__(self, key: bytes, protocol: str, clock_ns: Callable[[], int]) -> None:
        if not key:
            raise ValueError("a seal needs a key")
        self._key = hmac.digest(key, b"rove seal " + protocol.encode(), "sha256")
        self._clock_ns = clock_ns
        self._ahead_ns = 0
        """How far the group's time is ahead of the clock."""
        self._last_ns = 0
        self._latest: dict[int, int] = {}
        """When the last packet of each sender was sealed; needed for ``FRESH_S`` only."""

    def close(self, content: bytes, sender: int) -> bytes:
        self._last_ns = max(self._last_ns + 1, self._now_ns())
        sealed = content + _TIME.pack(self._last_ns)
        return sealed + self._tag(sealed, sender)

    def open(self, data: bytes, sender: int) -> bytes:
        """The content. Raises Unsealed."""
        content, sealed, tag = data[:-SIZE], data[:-_TAG_SIZE], data[-_TAG_SIZE:]
        if len(data) < SIZE or not hmac.compare_digest(tag, self._tag(sealed, sender)):
            raise Unsealed("unauthenticated")
        (sealed_ns,) = _TIME.unpack(sealed[len(content) :])
        now_ns = self._now_ns()
        if not max(self._latest.get(sender, -1), now_ns - _FRESH_NS) < sealed_ns < _MOST_NS:
            raise Unsealed("replay")
        if sealed_ns > now_ns:
            self._ahead_ns += sealed_ns - now_ns
        if sender not in self._latest and len(self._latest) >= _MOST_SENDERS:
            self._forget(sealed_ns)
        self._latest[sender] = sealed_ns
        return content

    def _now_ns(self) -> int:
        return self._clock_ns() + self._ahead_ns

    def _tag(self, sealed: bytes, sender: int) -> bytes:
        return hmac.digest(self._key, _ADDRESS.pack(sender) + sealed, "sha256")[:_TAG_SIZE]

    def _forget(self, now_ns: int) -> None:
        """Those whose packets are too old to be taken anyway; if there are none, the one silent longest."""
        kept = {sender: when for sender, when in self._latest.items() if when > now_ns - _FRESH_NS}
        if len(kept) >= _MOST_SENDERS:
            del kept[min(kept, key=lambda sender: kept[sender])]
        self._latest = kept
