"""Bounds the work of a phase: by time, and by the wish of the user to leave."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any

from orchestrator.lifecycle.interruption import Interruption
from orchestrator.runs.backend import Outcomes
from orchestrator.runs.phases import Urgency

CANCEL_GRACE_S = 5.0
MOST_TIMES = 20.0
"""A phase may last so many times its limit while its processes wait for a processor."""
_LEAST_S = 0.05


class PhaseInterrupted(Exception):
    """The user asked to stop before the phase ended."""


def _never() -> float:
    return 0.0


class TimeLimit:
    """A limit on the wall clock, in which time does not count while processes wait for a processor.

    ``waited_s`` says how long they have waited so far. Time begins to count at once.
    """

    def __init__(
        self,
        seconds: float,
        waited_s: Callable[[], float] = _never,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._seconds = seconds
        self._waited_s = waited_s
        self._clock = clock
        self._begun = clock()
        self._waited_before = waited_s()
        self._uncounted = 0.0

    def left(self) -> float:
        """Returns how many seconds are left at least; 0 if none are."""
        # The most so far: a process that has ended counts nothing any more.
        self._uncounted = max(self._uncounted, self._waited_s() - self._waited_before)
        passed = self._clock() - self._begun
        counted = max(passed - self._uncounted, passed / MOST_TIMES)
        left = self._seconds - counted
        return max(left, _LEAST_S) if left > 0 else 0.0

    def __str__(self) -> str:
        waited = (
            f", without {self._uncounted:.0f} s of waiting for a processor" if self._uncounted >= 1 else ""
        )
        return f"{self._seconds:g} s{waited}"


async def bounded(
    work: Coroutine[Any, Any, Outcomes], limit: TimeLimit, interruption: Interruption, level: Urgency | None
) -> Outcomes:
    """Awaits ``work``. Raises TimeoutError, or PhaseInterrupted once the user's urgency reaches ``level``."""
    task = asyncio.create_task(work)
    watch = [] if level is None else [asyncio.create_task(interruption.reaches(level))]
    try:
        while not task.done() and (left := limit.left()):
            await asyncio.wait([task, *watch], timeout=left, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                break
            if any(watcher.done() for watcher in watch):
                raise PhaseInterrupted
        if task.done():
            return task.result()
        raise TimeoutError
    finally:
        for unfinished in (task, *watch):
            unfinished.cancel()
        # Bounded as well: work that ignores its cancellation must not delay the teardown.
        await asyncio.wait([task, *watch], timeout=CANCEL_GRACE_S)
        if task.done() and not task.cancelled():
            task.exception()  # marks it as retrieved: an error after the cancellation changes nothing
