"""Which messages were seen before: two generations of keys, of which the older is forgotten now and then."""

from collections.abc import Sequence

from node_agent.olsr import wire

GENERATION_NS = 30_000_000_000  # a message is remembered for one to two of these
MAX_KEYS = 65536  # per generation

_NEVER = 1 << 62


def key(message: wire.Message) -> int:
    """What makes a message the same as another."""
    return message.originator << 16 | message.seqno


class DuplicateSet:
    def __init__(self) -> None:
        self.next_expiry = _NEVER
        self.refused = 0
        self._young: set[int] = set()
        self._old: set[int] = set()

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def new(self, keyed: Sequence[tuple[int, wire.Message]], now: int) -> list[wire.Message]:
        """Those that were never seen; they are remembered from now on."""
        young, old = self._young, self._old
        # Nearly all that a node hears it has heard before: this is the daemon's hottest line.
        unseen = [each for each in keyed if each[0] not in young and each[0] not in old]
        if not unseen:
            return []
        if len(young) + len(unseen) > MAX_KEYS:
            self.refused += 1
            self.expire(now)
            young = self._young
        if not young:
            self.next_expiry = min(self.next_expiry, now + GENERATION_NS)
        fresh = []
        for message_key, message in unseen:
            if message_key not in young:
                young.add(message_key)
                fresh.append(message)
        return fresh

    def expire(self, now: int) -> None:
        self._old, self._young = self._young, set()
        self.next_expiry = now + GENERATION_NS if self._old else _NEVER
