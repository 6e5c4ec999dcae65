"""Limits an AODV node's work: rate limits, and a memory of the requests it has seen."""

from collections import OrderedDict, deque

_SECOND_NS = 1_000_000_000
SEEN_LIMIT = 4096
LIMITED = 1024


class RateLimit:
    """Allows so many events in any one second."""

    def __init__(self, per_second: int) -> None:
        self._times: deque[int] = deque(maxlen=per_second)

    def free_at_ns(self, now_ns: int) -> int:
        """Returns when the next event is allowed: now or later."""
        full = len(self._times) == self._times.maxlen
        return max(now_ns, self._times[0] + _SECOND_NS) if full else now_ns

    def take(self, now_ns: int) -> None:
        self._times.append(now_ns)


class RateLimits:
    """One rate limit for each key. If there are too many keys, the least recently used is forgotten."""

    def __init__(self, per_second: int) -> None:
        self._per_second = per_second
        self._limits: dict[int, RateLimit] = {}

    def take(self, key: int, now_ns: int) -> bool:
        """Returns whether one more event is allowed now, and counts it if so."""
        limit = self._limits.pop(key, None) or RateLimit(self._per_second)
        self._limits[key] = limit
        if len(self._limits) > LIMITED:
            del self._limits[next(iter(self._limits))]
        if limit.free_at_ns(now_ns) > now_ns:
            return False
        limit.take(now_ns)
        return True


class SeenRequests:
    """Remembers requests, so that each is answered and passed on once.
    Forgets the oldest if there are too many."""

    def __init__(self, memory_ns: int) -> None:
        self._memory_ns = memory_ns
        self._seen = OrderedDict[
            tuple[int, int], int
        ]()  # a dict is slow to find its first key after deletions

    def is_new(self, originator: int, number: int, now_ns: int) -> bool:
        key = (originator, number)
        known_until = self._seen.get(key, 0)
        self._seen[key] = now_ns + self._memory_ns
        self._seen.move_to_end(key)
        oldest = next(iter(self._seen))
        while len(self._seen) > SEEN_LIMIT or self._seen[oldest] <= now_ns:
            del self._seen[oldest]
            oldest = next(iter(self._seen))
        return known_until <= now_ns
