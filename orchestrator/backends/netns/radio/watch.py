"""Asks the radio every few seconds how late it is, for whoever watches the run."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from orchestrator.backends.netns.radio.client import RadioFailed
from orchestrator.runs.backend import RadioSeen

PERIOD_S = 5.0


class RadioWatch:
    """``latest``: the last answer. A radio that fails is noticed elsewhere."""

    def __init__(self, ask: Callable[[], Awaitable[RadioSeen | None]]) -> None:
        self.latest: RadioSeen | None = None
        self._ask = ask
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        if self._task is None:
            self._task = asyncio.create_task(self._keep_asking(), name="radio watch")

    async def close(self) -> None:
        """May be repeated."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _keep_asking(self) -> None:
        while True:
            await asyncio.sleep(PERIOD_S)
            with suppress(RadioFailed):
                self.latest = await self._ask()
