"""Opens feeds of runs for browsers, a bounded number of them, and closes those that nobody looks at."""

import asyncio
import sys
import time
import traceback
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from http import HTTPStatus

from orchestrator.errors import RoveError
from orchestrator.live.door import Watching
from orchestrator.live.server.answers import Refusal, not_found
from orchestrator.live.server.feed import Feed, Source
from orchestrator.live.server.threads import DaemonThreads
from orchestrator.runs.run_directory import RunDirectory

MOST_OPEN = 8
KEPT_S = 60.0
AGAIN_S = 5.0
"""A run that could not be read is opened anew after this time: there may have been too many files open."""
END_S = 3.0
"""So long the end waits for what is being read."""
UNREADABLE = "this run cannot be read any further"
_THREADS = 2

OpenSource = Callable[[RunDirectory], Source]


class _Watched:
    """``task`` reads the run while somebody watches and for a while after."""

    def __init__(self, run: RunDirectory, feed: Feed) -> None:
        self.run = run
        self.feed = feed
        self.watchers = 0
        self.task: asyncio.Task[None] | None = None
        self.pause: asyncio.TimerHandle | None = None
        self.failed_at = float("-inf")

    @property
    def can_be_tried_again(self) -> bool:
        failed = bool(self.feed.failure) and not self.watchers
        return failed and time.monotonic() - self.failed_at >= AGAIN_S


class Feeds:
    """Must be closed. A feed outlives its last watcher: the cursors that browsers hold stay valid."""

    def __init__(self, open_source: OpenSource) -> None:
        self._open_source = open_source
        self._threads = DaemonThreads(_THREADS, "feed")
        self._watched: OrderedDict[str, _Watched] = OrderedDict()
        self._opening = asyncio.Lock()
        self._closed = False
        self._left = asyncio.Event()
        """Nobody watches."""
        self._left.set()

    @property
    def watchers(self) -> int:
        return sum(each.watchers for each in self._watched.values())

    @asynccontextmanager
    async def watch(self, run: RunDirectory) -> AsyncIterator[Feed]:
        """Raises Refusal if too many runs are watched, or if this one could not be read."""
        watched = await self._opened(run)
        if watched.feed.failure:
            raise not_found(watched.feed.failure)
        watched.watchers += 1
        self._left.clear()
        self._resume(watched)
        try:
            yield watched.feed
        finally:
            watched.watchers -= 1
            if not self.watchers:
                self._left.set()
            if not watched.watchers and not self._closed:
                loop = asyncio.get_running_loop()
                watched.pause = loop.call_later(KEPT_S, self._pause, watched)

    async def settle(self, timeout: float) -> None:
        """Waits until nobody watches a run: browsers leave when they have heard of its end."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await self._left.wait()

    def wake(self) -> None:
        """Lets every stream look whether the server ends."""
        for each in self._watched.values():
            each.feed.wake()

    async def close(self) -> None:
        self._closed = True
        while self._watched:
            await self._drop(next(iter(self._watched)))
        self._threads.shutdown()

    async def _opened(self, run: RunDirectory) -> _Watched:
        name = str(run.path)
        async with self._opening:
            if self._closed:
                raise Refusal(HTTPStatus.SERVICE_UNAVAILABLE, "the server ends")
            if name in self._watched and self._watched[name].can_be_tried_again:
                await self._drop(name)
            if name not in self._watched:
                await self._make_room()
                self._watched[name] = _Watched(run, Feed(await self._source(run), self._threads))
            self._watched.move_to_end(name)
            return self._watched[name]

    async def _source(self, run: RunDirectory) -> Source:
        """Raises Refusal if the run cannot be opened."""
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, self._open_source, run)
        except Exception as error:
            raise not_found(_said(error)) from error

    async def _make_room(self) -> None:
        unwatched = [name for name, each in self._watched.items() if not each.watchers]
        while len(self._watched) >= MOST_OPEN:
            if not unwatched:
                raise Refusal(HTTPStatus.SERVICE_UNAVAILABLE, f"{MOST_OPEN} runs are watched already")
            await self._drop(unwatched.pop(0))

    async def _drop(self, name: str) -> None:
        watched = self._watched.pop(name)
        self._pause(watched)
        if watched.task is not None:
            await asyncio.wait([watched.task], timeout=END_S)
        with suppress(TimeoutError):  # it is still being read, and may be for long: its files stay open
            async with asyncio.timeout(END_S):
                await watched.feed.close()

    def _resume(self, watched: _Watched) -> None:
        if watched.pause is not None:
            watched.pause.cancel()
            watched.pause = None
        watched.feed.go_on()
        if watched.task is None or watched.task.done():
            watched.task = asyncio.create_task(self._keep_reading(watched), name="feed")

    def _pause(self, watched: _Watched) -> None:
        if watched.pause is not None:
            watched.pause.cancel()
            watched.pause = None
        watched.feed.stop()

    async def _keep_reading(self, watched: _Watched) -> None:
        """Lets what remote nodes record come here meanwhile. An error ends a run's streams and no others."""
        feed = watched.feed
        try:
            async with Watching(watched.run):
                await feed.run()
        except Exception as error:
            feed.failure = _said(error)
            watched.failed_at = time.monotonic()
            feed.wake()


def _said(error: Exception) -> str:
    """Returns what browsers are told. What is no clear error by itself is printed where the server is."""
    if isinstance(error, RoveError):
        return str(error)
    traceback.print_exception(error, file=sys.stderr)
    return UNREADABLE
