"""Seals messages of routing daemons: adds a tag that needs the group's key.

A seal is a time and a tag over the time, everything before it, and the sender's address. Each sender's time
grows with every packet, and must not be more than ``FRESH_S`` behind the receiver's. So a recorded packet is
refused when it is sent again, and a packet of one address cannot be sent from another.

The time is the group's, not a clock's: every node takes the latest time of any valid seal, and counts on from
there. So clocks need not agree, and a node that restarts with its clock far behind is refused only until it
has received one packet of a neighbour. What is not prevented: within ``FRESH_S`` a packet can be sent again
to nodes that received neither it nor a later one of its sender; if all nodes restart with their clocks set
back, old packets are valid again; whoever has the key can send anything.

Whoever has the key can also push the group's time ahead. The other nodes follow, so none is locked out, even
after the attacker has left. The time counts milliseconds in 64 bits, and leaps at most once per ``_PAUSE_MS``
and by at most ``_LEAP_MS``: using it up takes 24 days of leaps. A node whose clock is several leaps behind
needs as many packets to catch up. It does not follow a time farther ahead than ``_REACH_MS``, so that one
recorded packet cannot cause endless leaps.
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
_FRESH_MS = int(FRESH_S * 1e3)
_NEAR_MS = 60_000
"""A time farther ahead than this is a leap."""
_LEAP_MS = 1 << 42
"""139 years: one leap takes a clock that starts in 1970 to the present."""
_REACH_MS = _LEAP_MS << 12
_PAUSE_MS = 1_000
_MOST_MS = 1 << 63
_MOST_SENDERS = 4096


class Unsealed(Exception):
    """The packet is refused. ``reason``: ``unauthenticated`` (no seal, or made without the key) or ``replay``
    (its time is past, or too far ahead to be followed at once)."""

    def __init__(self, reason: Literal["unauthenticated", "replay"]) -> None:
        super().__init__(reason)
        self.reason = reason


class Seal:
    """``protocol`` prevents that one protocol's packets are taken for another's. ``clock_ns`` may be any
    clock that continues after a restart; it may jump."""

    def __init__(self, key: bytes, protocol: str, clock_ns: Callable[[], int]) -> None:
        if not key:
            raise ValueError("a seal needs a key")
        self._key = hmac.digest(key, b"rove seal " + protocol.encode(), "sha256")
        self._clock_ns = clock_ns
        self._ahead_ms = 0
        """How far the group's time is ahead of the clock."""
        self._leapt_ms: int | None = None
        """The clock at the last leap of the group's time."""
        self._last_ms = 0
        self._latest: dict[int, int] = {}
        """Each sender's last seal time in ms; needed for ``FRESH_S`` only."""

    def add(self, content: bytes, sender: int) -> bytes:
        self._last_ms = max(self._last_ms + 1, self._now_ms())
        sealed = content + _TIME.pack(self._last_ms)
        return sealed + self._tag(sealed, sender)

    def check(self, data: bytes, sender: int) -> bytes:
        """Checks the seal and returns the content. Raises Unsealed."""
        content, sealed, tag = data[:-SIZE], data[:-_TAG_SIZE], data[-_TAG_SIZE:]
        if len(data) < SIZE or not hmac.compare_digest(tag, self._tag(sealed, sender)):
            raise Unsealed("unauthenticated")
        (sealed_ms,) = _TIME.unpack(sealed[len(content) :])
        now_ms = self._now_ms()
        if sealed_ms <= max(self._latest.get(sender, -1), now_ms - _FRESH_MS):
            raise Unsealed("replay")
        if sealed_ms > now_ms and not self._follow(sealed_ms - now_ms):
            raise Unsealed("replay")
        if sender not in self._latest and len(self._latest) >= _MOST_SENDERS:
            self._forget(sealed_ms)
        self._latest[sender] = sealed_ms
        return content

    def _follow(self, ahead_ms: int) -> bool:
        """Moves the group's time forward, and returns whether it got all the way."""
        if ahead_ms > _REACH_MS:
            return False
        if ahead_ms > _NEAR_MS:
            clock_ms = self._clock_ms()
            if self._leapt_ms is not None and abs(clock_ms - self._leapt_ms) < _PAUSE_MS:
                return False
            self._leapt_ms = clock_ms
        step_ms = min(ahead_ms, _LEAP_MS)
        if self._now_ms() + step_ms >= _MOST_MS:
            return False
        self._ahead_ms += step_ms
        return step_ms == ahead_ms

    def _clock_ms(self) -> int:
        return self._clock_ns() // 1_000_000

    def _now_ms(self) -> int:
        return self._clock_ms() + self._ahead_ms

    def _tag(self, sealed: bytes, sender: int) -> bytes:
        return hmac.digest(self._key, _ADDRESS.pack(sender) + sealed, "sha256")[:_TAG_SIZE]

    def _forget(self, now_ms: int) -> None:
        """Forgets senders whose last packet is too old to matter; if
        there are none, the one silent longest."""
        kept = {sender: when for sender, when in self._latest.items() if when > now_ms - _FRESH_MS}
        if len(kept) >= _MOST_SENDERS:
            del kept[min(kept, key=lambda sender: kept[sender])]
        self._latest = kept
