"""Who may ask: a token that is printed once, and sessions of browsers that have shown it."""

import hmac
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable

MOST_SESSIONS = 256
MOST_PEERS = 1024
MOST_TRIES = 10
MOST_TRIES_OF_ALL = 200
WINDOW_S = 60.0
LEAST_TOKEN = 16
_TOKEN_BYTES = 24
_LONGEST = 256


def new_token() -> str:
    return secrets.token_urlsafe(_TOKEN_BYTES)


class Access:
    """Without a token everybody may ask who reaches the server at all: programs of this machine."""

    def __init__(self, token: str | None, now: Callable[[], float] = time.monotonic) -> None:
        self._token = None if token is None else token.encode()
        self._sessions: OrderedDict[str, None] = OrderedDict()
        self._failures = _Failures(now)

    @property
    def needed(self) -> bool:
        return self._token is not None

    def right_token(self, shown: str) -> bool:
        """Compares in constant time."""
        if self._token is None:
            return True
        data = shown.encode(errors="surrogateescape")
        return len(data) <= _LONGEST and hmac.compare_digest(data, self._token)

    def too_many_wrong(self, peer: str) -> bool:
        """Counts a wrong token of ``peer``. Returns whether it, or all, had shown too many of late before."""
        if self._failures.too_many(peer):
            return True
        self._failures.add(peer)
        return False

    def open_session(self) -> str:
        """Returns the value of a browser's cookie. The oldest session ends if there are too many."""
        session = secrets.token_urlsafe(_TOKEN_BYTES)
        self._sessions[session] = None
        while len(self._sessions) > MOST_SESSIONS:
            self._sessions.popitem(last=False)
        return session

    def in_session(self, shown: str) -> bool:
        """The value has 192 random bits: looking it up tells nobody enough to guess one."""
        if len(shown) > _LONGEST or shown not in self._sessions:
            return False
        self._sessions.move_to_end(shown)
        return True


class _Failures:
    """Counts wrong tokens of the last minute, of each peer and of all, in bounded memory."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._of: OrderedDict[str, tuple[float, int]] = OrderedDict()

    def add(self, peer: str) -> None:
        for who in (peer, ""):
            begun, count = self._of.pop(who, (self._now(), 0))
            if self._now() - begun > WINDOW_S:
                begun, count = self._now(), 0
            self._of[who] = (begun, count + 1)
        while len(self._of) > MOST_PEERS:
            self._of.popitem(last=False)

    def too_many(self, peer: str) -> bool:
        return self._count(peer) >= MOST_TRIES or self._count("") >= MOST_TRIES_OF_ALL

    def _count(self, who: str) -> int:
        begun, count = self._of.get(who, (0.0, 0))
        return count if self._now() - begun <= WINDOW_S else 0
