"""A program on a node whose end, unless it was asked for, is a failure that gets explained."""

import asyncio
import signal
from contextlib import suppress
from pathlib import Path

from orchestrator.backends.netns.errors import ForkServerError
from orchestrator.backends.netns.forkclient import Child

END_S = 3.0


class Watched:
    """``failure`` is empty as long as the program does what it should."""

    def __init__(self, what: str, child: Child, log: Path) -> None:
        """``what``: how people call it. ``log``: where its last words are."""
        self.failure = ""
        self._what = what
        self._child = child
        self._log = log
        self._stopping = False
        self._watching = asyncio.create_task(self._watch())

    async def end(self, first: signal.Signals | None) -> None:
        """Wait until it ends, which ``first`` may ask for; if it does not, make it end."""
        self._stopping = True
        with suppress(ForkServerError):
            if first is not None:
                await self._child.signal(first)
            if not await self._ended_within(END_S):
                self.failure = self.failure or f"{self._what} did not end within {END_S:g} s of being stopped"
                await self._child.signal(signal.SIGKILL)
                await self._ended_within(END_S)

    async def close(self) -> None:
        """Let go of it; the fork server ends it. May be repeated."""
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
