"""Tracks direct neighbours: when each was last heard, and whether it can hear this node."""

MOST = 1024
"""More than can be in radio range: invented senders must not fill the memory."""


class Neighbours:
    def __init__(self, silence_ns: int, answer_ns: int, blacklist_ns: int) -> None:
        self._silence_ns = silence_ns
        self._answer_ns = answer_ns
        self._blacklist_ns = blacklist_ns
        self._heard_ns: dict[int, int] = {}
        self._unanswered: dict[int, int] = {}
        self._blacklisted_until: dict[int, int] = {}

    def heard(self, neighbour: int, now_ns: int) -> None:
        self._heard_ns.pop(neighbour, None)
        self._heard_ns[neighbour] = now_ns
        if len(self._heard_ns) > MOST:
            del self._heard_ns[next(iter(self._heard_ns))]

    def silent_at_ns(self, neighbour: int) -> int:
        """Returns when the neighbour counts as gone if nothing more is heard."""
        return self._heard_ns.get(neighbour, 0) + self._silence_ns

    def expects_answer(self, neighbour: int, now_ns: int) -> None:
        self._unanswered.setdefault(neighbour, now_ns + self._answer_ns)

    def answered(self, neighbour: int) -> None:
        self._unanswered.pop(neighbour, None)

    def next_answer_ns(self) -> int | None:
        return min(self._unanswered.values(), default=None)

    def blacklist(self, neighbour: int, now_ns: int) -> None:
        """Ignores the neighbour's requests for a while: it does not hear
        us, so a route over it would not work."""
        self._blacklisted_until[neighbour] = now_ns + self._blacklist_ns

    def is_blacklisted(self, neighbour: int, now_ns: int) -> bool:
        return self._blacklisted_until.get(neighbour, 0) > now_ns

    def expire(self, now_ns: int) -> None:
        for neighbour in [each for each, due in self._unanswered.items() if due <= now_ns]:
            del self._unanswered[neighbour]
            self.blacklist(neighbour, now_ns)
        for known, lasting in ((self._heard_ns, self._silence_ns), (self._blacklisted_until, 0)):
            for neighbour in [each for each, since in known.items() if since + lasting <= now_ns]:
                del known[neighbour]
