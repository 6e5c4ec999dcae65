"""When a replica that makes no progress asks upstream what has been done elsewhere: ever more rarely."""

from math import inf


class AskTimer:
    def __init__(self, first: float, longest: float) -> None:
        self._first = first
        self._longest = longest
        self._pause = first
        self.due_at = inf

    @property
    def is_off(self) -> bool:
        return self.due_at == inf

    def start(self, now: float) -> None:
        """There is something to wait for."""
        if self.is_off:
            self.due_at = now + self._pause

    def restart(self, now: float) -> None:
        """There was progress."""
        self._pause = self._first
        self.due_at = now + self._pause

    def back_off(self, now: float) -> None:
        self.due_at = now + self._pause
        self._pause = min(2 * self._pause, self._longest)

    def stop(self) -> None:
        """There is nothing to wait for."""
        self.due_at, self._pause = inf, self._first
