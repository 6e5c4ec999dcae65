"""Waits while real time passes: checks the run and reports progress."""

import asyncio
import time
from collections.abc import Callable

from orchestrator.runs.backend import Progress

LOOK_S = 1.0


async def pass_until(end: float, seconds: float, progress: Progress, check: Callable[[], None]) -> None:
    """Waits until ``time.monotonic()`` is ``end``, ``seconds`` after the beginning; ``check`` may raise."""
    while (left := end - time.monotonic()) > 0:
        check()
        progress(1.0 - left / seconds)
        await asyncio.sleep(min(LOOK_S, left))
