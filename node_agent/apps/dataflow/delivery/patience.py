"""When a replica that makes no progress asks upstream what has been done elsewhere: ever more rarely."""

from math import inf


class Patience:
    def __init__(self, first: float, longest: float) -> None:
        self._first = first
        self._longest = longest
        self._pause = first
        self.ends_at = inf

    @property
    def at_rest(self) -> bool:
        return self.ends_at == inf

    def begin(self, now: float) -> None:
        """There is something to wait for."""
        if self.at_rest:
            self.ends_at = now + self._pause

    def renew(self, now: float) -> None:
        """There was progress."""
        self._pause = self._first
        self.ends_at = now + self._pause

    def asked(self, now: float) -> None:
        self.ends_at = now + self._pause
        self._pause = min(2 * self._pause, self._longest)

    def rest(self) -> None:
        """There is nothing to wait for."""
        self.ends_at, self._pause = inf, self._first
