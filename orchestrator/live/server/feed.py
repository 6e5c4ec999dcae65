"""What is known of one watched run, shared by all browsers that look at it.

The run's files are read by one ``Source``, in a thread, a slice at a time. Its changes are kept encoded;
a browser asks for what comes after its cursor, so that a slow one holds nothing up and needs no queue.
"""

import asyncio
import secrets
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from typing import Any, Protocol, TypeVar

from orchestrator.live.server.blocks import Block, block, joined, messages
from orchestrator.live.thinning import Thinner
from orchestrator.runs.timeline import Change

PERIOD_S = 0.1
SLOW_PERIOD_S = 1.0
PLANNED_S = 20.0
"""So long the page waits for a run to be planned."""
MESSAGE_BYTES = 256 * 1024
MOST_BYTES = 64 * 1024 * 1024
"""Of one run, compressed. Beyond that, what moves is kept once a second."""
_EPOCH_BITS = 20
_COUNT_BITS = 32

T = TypeVar("T")


class Source(Protocol):
    """Reads a run's directory. All is called in a thread, one call at a time."""

    ended: bool
    """Nothing will come any more, and all was read."""

    @property
    def head(self) -> dict[str, Any]: ...

    @property
    def now(self) -> float: ...

    @property
    def caught_up(self) -> bool:
        """Was all read that is there?"""
        ...

    def poll(self) -> list[Change]:
        """Returns what is new: a bounded number of changes, none if there is nothing new."""
        ...

    def close(self) -> None: ...


class Feed:
    """Must be closed. ``run`` reads until the run has ended; changes are numbered as they come."""

    def __init__(self, source: Source, threads: Executor) -> None:
        self._source = source
        self._threads = threads
        self._epoch = secrets.randbits(_EPOCH_BITS)
        self._sealed: list[Block] = []
        self._ends: list[int] = []
        self._open: list[Block] = []
        self._count = 0
        self._bytes = 0
        self._thinner: Thinner | None = None
        self._news = asyncio.Event()
        self._begun = asyncio.Event()
        self._turn = asyncio.Lock()
        self._wanted = True
        self.now = 0.0
        self.ended = False
        self.failure = ""

    @property
    def count(self) -> int:
        """How many changes were published so far."""
        return self._count

    def count_of(self, cursor: int) -> int | None:
        """Returns how many changes the browser has that names this cursor; None if it is not this feed's.

        A cursor means nothing to another server: what it has read may be in another order.
        """
        count = cursor & ((1 << _COUNT_BITS) - 1)
        return count if cursor >> _COUNT_BITS == self._epoch and count <= self._count else None

    async def head(self) -> dict[str, Any]:
        """Waits until the run is planned, if it goes on: before that there is nothing to draw."""
        deadline = time.monotonic() + PLANNED_S
        while True:
            async with self._turn:
                head = await self._in_thread(lambda: self._source.head)
            known = self._begun.is_set() and (head.get("apps") or self.ended)
            if known or self.failure or time.monotonic() >= deadline:
                return head
            await asyncio.sleep(PERIOD_S)

    async def run(self) -> None:
        """Reads until the run has ended, or until ``stop``. Do not cancel it: what was just read is lost."""
        while self._wanted and not self.ended:
            begun = time.monotonic()
            async with self._turn:
                made = await self._in_thread(self._read)
            self._publish(made)
            self._begun.set()
            took = time.monotonic() - begun
            await asyncio.sleep(max(0.01, PERIOD_S - took) if self._source.caught_up else 0)

    def go_on(self) -> None:
        """Takes back a ``stop`` that ``run`` has not seen yet."""
        self._wanted = True

    def stop(self) -> None:
        self._wanted = False

    def after(self, count: int) -> Iterator[tuple[int, Block]]:
        """Yields the blocks that have changes after the first ``count``, each with what it begins with."""
        for each in [*self._sealed[bisect_right(self._ends, count) :], *self._open]:
            if each.end > count:
                yield count, each
                count = each.end

    def beat(self, count: int) -> Block:
        """A message without changes, for a browser that has the first ``count``."""
        return block(count, (), self._cursor(count), self.now, self.ended and count >= self._count)

    async def news(self, timeout: float) -> bool:
        """Waits for the next message; returns False if there was none in ``timeout`` seconds."""
        try:
            async with asyncio.timeout(timeout):
                await self._news.wait()
        except TimeoutError:
            return False
        return True

    def wake(self) -> None:
        """Ends all that wait for news."""
        self._news.set()
        self._news = asyncio.Event()

    async def close(self) -> None:
        async with self._turn:
            await self._in_thread(self._source.close)

    def _read(self) -> list[Block]:
        """In a thread: the next slice as encoded messages."""
        changes = self._source.poll()
        if self._thinner is not None:
            changes = self._thinner.thin(changes) + (self._thinner.rest() if self._source.ended else [])
        self.now = self._source.now
        made: list[Block] = []
        count = self._count
        for some in messages(changes, MESSAGE_BYTES):
            made.append(block(count, some, self._cursor(count + len(some)), self.now))
            count += len(some)
        return made

    def _publish(self, made: Sequence[Block]) -> None:
        self.ended = self._source.ended
        if not made and not self.ended:
            return
        self._open += made
        self._count = made[-1].end if made else self._count
        if self.ended or sum(each.size for each in self._open) >= MESSAGE_BYTES:
            self._seal()
        self.wake()

    def _seal(self) -> None:
        """Puts open blocks together and keeps them compressed."""
        part: list[Block] = []
        size = 0
        for each in [*self._open, None]:
            if part and (each is None or size + each.size > MESSAGE_BYTES):
                whole = joined(part, self._cursor(part[-1].end), self.now)
                whole.seal()
                self._bytes += whole.size
                self._sealed.append(whole)
                self._ends.append(whole.end)
                part, size = [], 0
            if each is not None:
                part.append(each)
                size += each.size
        self._open = []
        if self._bytes > MOST_BYTES and self._thinner is None:
            self._thinner = Thinner(SLOW_PERIOD_S)

    def _cursor(self, count: int) -> int:
        return self._epoch << _COUNT_BITS | count

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)
