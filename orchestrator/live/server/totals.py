"""Counts what runs of a sweep have delivered so far, for those that no analysis has been made of yet.

Reading records takes a while, and a run may be going on here: this takes at most a fifth of a core, one run
after the other, and only while somebody looks at the sweep.
"""

import asyncio
import sys
import time
import traceback
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, TypeVar

from orchestrator.errors import RoveError
from orchestrator.live.server.feed import Source
from orchestrator.live.server.threads import DaemonThreads
from orchestrator.runs.run_directory import RunDirectory
from orchestrator.runs.timeline import Change

DUTY = 0.2
WANTED_S = 10.0
MOST_KEPT = 10_000
MOST_OPEN = 4
END_S = 3.0
"""So long the end waits for what is being read."""
MOST_FAILURES = 5
"""Of one run, after which it is not counted; files may not be readable for a moment."""
_PAUSE_S = 0.5
_COUNTS = ("offered", "delivered", "lost", "waiting", "loss")


T = TypeVar("T")


class Totals:
    """Must be closed. ``known`` has by run what was counted so far."""

    def __init__(self, open_source: Callable[[RunDirectory], Source]) -> None:
        self._open_source = open_source
        self._wanted: dict[str, RunDirectory] = {}
        self._until = float("-inf")
        self._reading: OrderedDict[str, _Count] = OrderedDict()
        self._done: set[str] = set()
        self._failures: dict[str, int] = {}
        self._threads = DaemonThreads(1, "totals")
        self._task: asyncio.Task[None] | None = None
        self.known: dict[str, Mapping[str, float]] = {}

    def want(self, runs: Iterable[RunDirectory]) -> None:
        """Asks for the totals of these runs; those of the last that were asked for come."""
        self._wanted = {run.id: run for run in runs}
        self._until = time.monotonic() + WANTED_S
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._count(), name="totals")

    async def close(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            self._until = float("-inf")
            await asyncio.wait([task], timeout=END_S)
            task.cancel()
            await asyncio.wait([task], timeout=END_S)
        self._threads.shutdown()

    async def _count(self) -> None:
        try:
            while time.monotonic() < self._until:
                waiting = [run for run_id, run in self._wanted.items() if run_id not in self._done]
                for run in waiting:
                    if time.monotonic() < self._until:
                        await self._advance_or_leave(run)
                await asyncio.sleep(_PAUSE_S)
        finally:
            for count in self._reading.values():
                await self._in_thread(count.close)
            self._reading.clear()

    async def _advance_or_leave(self, run: RunDirectory) -> None:
        """A run that cannot be read ends its own counting and no other's."""
        try:
            await self._advance(run)
        except Exception as error:
            if not isinstance(error, RoveError | OSError):
                traceback.print_exception(error, file=sys.stderr)
            failures = self._failures[run.id] = self._failures.get(run.id, 0) + 1
            if failures >= MOST_FAILURES or not isinstance(error, OSError):
                self._done.add(run.id)
            if (count := self._reading.pop(run.id, None)) is not None:
                with suppress(OSError):
                    await self._in_thread(count.close)

    async def _advance(self, run: RunDirectory) -> None:
        """Reads on until everything that is there has been read."""
        count = self._reading.pop(run.id, None)
        if count is None:
            count = await self._in_thread(lambda: _Count(self._open_source(run)))
        self._reading[run.id] = count
        while len(self._reading) > MOST_OPEN:
            await self._in_thread(self._reading.popitem(last=False)[1].close)
        while time.monotonic() < self._until:
            began = time.monotonic()
            more = await self._in_thread(count.read)
            await asyncio.sleep((time.monotonic() - began) * (1 / DUTY - 1))
            if not more:
                break
        if len(self.known) < MOST_KEPT:
            self.known[run.id] = count.results()
        if count.ended:
            self._done.add(run.id)
            await self._in_thread(self._reading.pop(run.id).close)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)


class _Count:
    """What one run has counted so far."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._last: dict[str, Change] = {}
        self.close = source.close

    @property
    def ended(self) -> bool:
        return self._source.ended

    def read(self) -> bool:
        """Reads a slice; returns whether there is more."""
        for change in self._source.poll():
            if change.channel == "total":
                self._last[change.app] = change
        return not (self._source.caught_up or self._source.ended)

    def results(self) -> dict[str, float]:
        found: dict[str, float] = {}
        for app, change in self._last.items():
            value: Any = change.value
            prefix = "" if len(self._last) == 1 else f"{app} "
            for name in _COUNTS if isinstance(value, dict) else ():
                if isinstance(value.get(name), int | float):
                    found[f"{prefix}{name} so far"] = value[name]
        return found
