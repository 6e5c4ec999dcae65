"""Remembers which messages were seen: two generations of keys, of which the older is dropped periodically."""

from collections.abc import Collection

from node_agent.olsr import wire

GENERATION_NS = 30_000_000_000  # a message is remembered for one to two of these
MAX_KEYS = 65536  # per generation

_NEVER = 1 << 62


def key(message: wire.Message) -> int:
    """Returns the message's duplicate key."""
    return message.originator << 16 | message.seqno


class DuplicateSet:
    def __init__(self) -> None:
        self.next_expiry = _NEVER
        self.evicted = 0
        self._young: set[int] = set()
        self._old: set[int] = set()

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def unseen(self, keys: frozenset[int]) -> frozenset[int]:
        # Nearly all received messages are duplicates: this is the daemon's hottest line.
        return keys - self._young - self._old

    def remember(self, keys: Collection[int], now: int) -> None:
        if len(self._young) + len(keys) > MAX_KEYS:
            self.evicted += 1
            self.expire(now)
        if not self._young:
            self.next_expiry = min(self.next_expiry, now + GENERATION_NS)
        self._young.update(keys)

    def expire(self, now: int) -> None:
        self._old, self._young = self._young, set()
        self.next_expiry = now + GENERATION_NS if self._old else _NEVER
