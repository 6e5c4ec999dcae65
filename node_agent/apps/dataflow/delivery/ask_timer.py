"""The timer of a replica that makes no progress: when to ask upstream what other replicas have done."""

from math import inf


class AskTimer:
    """Doubles the pause with every question, from ``first`` to ``longest``; progress resets it. Times in
    seconds.
    """

    def __init__(self, first: float, longest: float) -> None:
        self._first = first
        self._longest = longest
        self._pause = first
        self.due_at = inf

    @property
    def is_off(self) -> bool:
        return self.due_at == inf

    def start(self, now: float) -> None:
        """Starts the timer if it is off: there is something to wait for."""
        if self.is_off:
            self.due_at = now + self._pause

    def restart(self, now: float) -> None:
        """Starts again with the first pause: there was progress."""
        self._pause = self._first
        self.due_at = now + self._pause

    def back_off(self, now: float) -> None:
        """Waits twice as long from now on: a question was sent."""
        self.due_at = now + self._pause
        self._pause = min(2 * self._pause, self._longest)

    def stop(self) -> None:
        """Switches the timer off: there is nothing to wait for."""
        self.due_at, self._pause = inf, self._first
