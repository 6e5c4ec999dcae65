"""Decides which cell of a sweep starts when: the longest first, as many at a time as there are places."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from orchestrator.lifecycle.interruption import Interruption
from orchestrator.planning.cost import Costs
from orchestrator.planning.sweep import Cell
from orchestrator.runs.phases import Urgency
from orchestrator.runs.verdict import Judgement, Verdict

LOOK_S = 1.0
"""Between two looks whether there are more places now."""
CANCEL_S = 20.0
"""How long cells on other machines may take to end."""


@dataclass(frozen=True)
class Standing:
    """How far a sweep is.

    ``left_s``: seconds until it is done; None before a cell has shown how long one takes.
    """

    running: int
    waiting: int
    ended: int
    failed: int
    left_s: float | None


Told = Callable[[Standing], None]


def say_nothing(standing: Standing) -> None:
    """Ignores how far the sweep is."""


class Schedule:
    """Runs each cell that has no verdict. In a sweep over both, cells in real time go after those in virtual
    time, and one after another: others would delay them."""

    def __init__(
        self,
        cells: Sequence[Cell],
        perform: Callable[[Cell], Awaitable[None]],
        verdict_of: Callable[[int], Verdict | None],
        interruption: Interruption,
        most_failures: int | None,
        tell: Told,
    ) -> None:
        self.starts_when_interrupted = False
        self._cells = {cell.number: cell for cell in cells}
        self._perform = perform
        self._verdict_of = verdict_of
        self._interruption = interruption
        self._most_failures = most_failures
        self._tell = tell
        self._costs = Costs.of(cells)
        self._real = {cell.number for cell in cells if not cell.experiment.traits.virtual_time}
        self._is_mixed = 0 < len(self._real) < len(cells)
        for number in self._cells:
            if (verdict := verdict_of(number)) is not None:
                self._learn(number, verdict)
        self._waiting = self._sorted([number for number in self._cells if verdict_of(number) is None])
        self._sorted_with = self._costs.learnt
        self._running: dict[asyncio.Task[None], int] = {}
        self._since: dict[int, float] = {}
        self._ended = 0
        self._failed = 0
        self._errors: list[BaseException] = []

    async def run(
        self,
        places: Callable[[], int],
        slots: Callable[[], int],
        on_interruption: Callable[[], None] | None = None,
    ) -> None:
        """Runs until nothing runs and nothing may start. When one cell breaks, the others still end in order
        before the error is raised.

        ``places``: how many cells may be under way now; ``slots``: how many of them make progress.
        """
        stop = asyncio.create_task(self._interruption.reaches(Urgency.IN_ORDER))
        try:
            while True:
                self._start(places())
                if not self._running:
                    break
                self._tell(self._standing(slots()))
                watched = {*self._running} if stop.done() else {*self._running, stop}
                await asyncio.wait(watched, timeout=LOOK_S, return_when=asyncio.FIRST_COMPLETED)
                self._take_ended()
                if stop.done() and on_interruption is not None:
                    await self._cancel(on_interruption)
                    on_interruption = None
        finally:
            stop.cancel()
            for task in self._running:
                task.cancel()
            if self._running:
                await asyncio.wait({*self._running}, timeout=CANCEL_S)
        self._tell(self._standing(slots()))
        for error in self._errors:
            raise error

    async def _cancel(self, cancel: Callable[[], None]) -> None:
        """Ends cells on other machines; does not wait long for an answer, and not at all for a user in
        haste."""
        asked = asyncio.ensure_future(asyncio.to_thread(cancel))
        at_once = asyncio.create_task(self._interruption.reaches(Urgency.AT_ONCE))
        deadline = time.monotonic() + CANCEL_S
        while waited := {task for task in (asked, *self._running) if not task.done()}:
            left = deadline - time.monotonic()
            if left <= 0 or at_once.done():
                break
            await asyncio.wait({*waited, at_once}, timeout=left, return_when=asyncio.FIRST_COMPLETED)
        at_once.cancel()
        with suppress(Exception):
            if asked.done():
                asked.result()
        self._take_ended()
        for task in self._running:
            task.cancel()

    def _start(self, places: int) -> None:
        if self._costs.learnt > self._sorted_with:
            self._sorted_with = self._costs.learnt
            self._waiting = self._sorted(self._waiting)
        while self._waiting and len(self._running) < places and self._may_start(self._waiting[0]):
            number = self._waiting.pop(0)
            self._since[number] = time.monotonic()
            task = asyncio.ensure_future(self._perform(self._cells[number]))
            self._running[task] = number

    def _sorted(self, numbers: Sequence[int]) -> list[int]:
        return sorted(self._costs.longest_first(numbers), key=lambda number: number in self._real)

    def _may_start(self, number: int) -> bool:
        if self._errors or (self._is_mixed and number in self._real and self._running):
            return False
        if self._most_failures is not None and self._failed >= self._most_failures:
            return False
        return self._interruption.urgency is Urgency.NONE or self.starts_when_interrupted

    def _take_ended(self) -> None:
        for task in [task for task in self._running if task.done()]:
            number = self._running.pop(task)
            del self._since[number]
            error = None if task.cancelled() else task.exception()
            if error is not None:
                self._errors.append(error)
                continue
            verdict = self._verdict_of(number)
            if verdict is None:
                continue
            self._ended += 1
            self._failed += verdict.verdict is not Judgement.VALID
            self._learn(number, verdict)

    def _learn(self, number: int, verdict: Verdict) -> None:
        """From sound runs, and by their own clock: on other machines cells also wait for their turn."""
        if verdict.verdict is Judgement.VALID and verdict.phases:
            self._costs.learn(number, sum(phase.seconds for phase in verdict.phases))

    def _standing(self, slots: int) -> Standing:
        now = time.monotonic()
        begun = sorted(self._running.values(), key=self._since.__getitem__)
        running = {number: now - self._since[number] for number in begun[:slots]}
        waiting = [*begun[slots:], *self._waiting]
        left = self._costs.left(waiting, running, slots) if self._costs.learnt else None
        return Standing(len(running), len(waiting), self._ended, self._failed, left)
