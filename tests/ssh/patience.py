"""Waiting for what another process does in its own time, but not for ever."""

import asyncio
from collections.abc import Callable

PATIENCE_S = 60.0


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not condition():  # noqa: ASYNC110 (nobody here could set an event)
            await asyncio.sleep(0.01)
