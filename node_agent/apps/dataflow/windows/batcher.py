"""Collects finished things, to hand them on together before any time passes.

Operators that only compute, and sources whose next tuple is ready, finish several in a row without waiting.
To handle these at once is cheaper. When the task that adds them waits for something, they are handed on.
"""

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")

MOMENT = 0.001
"""Seconds: the longest time between the first and the last thing that are handed on together."""


class Batcher(Generic[T]):
    """``hand_on`` gets what was collected, and the seconds that it took to finish it."""

    def __init__(self, hand_on: Callable[[list[T], float], None]) -> None:
        self._hand_on = hand_on
        self._loop = asyncio.get_running_loop()
        self._time = self._loop.time
        self._gathered: list[T] = []
        self._since = self._until = 0.0
        self._next_turn: asyncio.Handle | None = None
        self.alone = True
        """Whether no other task has run since ``begin``."""

    def begin(self) -> None:
        """Work on what is added next begins now."""
        self._since = self._until = self._time()
        self.alone = True
        self._watch_others()

    def add(self, finished: T) -> bool:
        """Adds one. If a moment has passed, hands on what was collected and returns True."""
        self._gathered.append(finished)
        self._until = self._time()
        if self._next_turn is None:
            self._watch_others()
        if self._until - self._since < MOMENT:
            return False
        self.flush()
        return True

    def flush(self) -> None:
        if self._gathered:
            gathered, self._gathered = self._gathered, []
            took, self._since = self._until - self._since, self._until
            self._hand_on(gathered, took)

    def _watch_others(self) -> None:
        if self._next_turn is None:
            self._next_turn = self._loop.call_soon(self._others_ran)

    def _others_ran(self) -> None:
        self._next_turn = None
        self.alone = False
        self.flush()
