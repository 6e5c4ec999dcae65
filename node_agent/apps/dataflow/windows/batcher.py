"""Gathers what is finished, to be handed on together before any time passes.

Much that could wait does not: operators that only compute, sources that have the next tuple ready. What they
finish in a row is cheaper to handle at once. When whoever adds to it waits for something, it is handed on.
"""

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")

MOMENT = 0.001
"""Seconds: how far apart what is handed on together can have been finished."""


class Batcher(Generic[T]):
    """``hand_on`` gets what has gathered, and the seconds that it took to finish it."""

    def __init__(self, hand_on: Callable[[list[T], float], None]) -> None:
        self._hand_on = hand_on
        self._loop = asyncio.get_running_loop()
        self._time = self._loop.time
        self._gathered: list[T] = []
        self._since = self._until = 0.0
        self._next_turn: asyncio.Handle | None = None
        self.alone = True
        """Nobody else has had a turn since the beginning."""

    def begin(self) -> None:
        """What is added after this was begun now."""
        self._since = self._until = self._time()
        self.alone = True
        self._watch_others()

    def add(self, finished: T) -> bool:
        """Whether a moment has passed; what has gathered is handed on then."""
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
