"""Watches a program on a node: an end that was not requested is a failure, with an explanation."""

import asyncio
import signal
from contextlib import suppress
from pathlib import Path

from orchestrator.backends.netns.errors import ForkServerError
from orchestrator.backends.netns.forkclient import Child

END_S = 3.0


class Watched:
    """``failure`` is empty while the program works."""

    def __init__(self, what: str, child: Child, log: Path) -> None:
        """``what``: its name in messages. ``log``: its log file."""
        self.failure = ""
        self._what = what
        self._child = child
        self._log = log
        self._stopping = False
        self._watching = asyncio.create_task(self._watch())

    async def end(self, first: signal.Signals | None) -> None:
        """Waits until it ends, optionally after the signal ``first``; kills it if it does not end."""
        self._stopping = True
        with suppress(ForkServerError):
            if first is not None:
                await self._child.signal(first)
            if not await self._ended_within(END_S):
                self.failure = self.failure or f"{self._what} did not end within {END_S:g} s of being stopped"
                await self._child.signal(signal.SIGKILL)
                await self._ended_within(END_S)

    async def close(self) -> None:
        """Stops watching; the fork server ends it. May be repeated."""
        self._stopping = True
        self._watching.cancel()

    async def _ended_within(self, seconds: float) -> bool:
        try:
            await asyncio.wait_for(self._child.wait(), seconds)
        except TimeoutError:
            return False
        return True

    async def _watch(self) -> None:
        try:
            status = await self._child.wait()
        except ForkServerError as error:
            self.failure = self.failure or str(error)
            return
        if status or not self._stopping:
            self.failure = self.failure or self._explained(status)

    def _explained(self, status: int) -> str:
        if status < 0:
            return f"{self._what} was ended by {signal.Signals(-status).name}"
        with suppress(OSError):
            if lines := self._log.read_text(errors="replace").strip().splitlines():
                return f"{self._what} ended with status {status}: {lines[-1]}"
        return f"{self._what} ended with status {status}"
