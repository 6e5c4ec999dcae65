"""Runs tasks until they are cancelled, and reports their errors."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any


class Tasks:
    """``on_failure`` gets the name of a task that raised an error, and the error."""

    def __init__(self, on_failure: Callable[[str, BaseException], None]) -> None:
        self._on_failure = on_failure
        self._tasks: list[asyncio.Task[None]] = []

    def spawn(self, name: str, run: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(run, name=name)
        task.add_done_callback(self._ended)
        self._tasks.append(task)

    def cancel(self) -> None:
        for task in self._tasks:
            task.cancel()

    async def wait(self) -> None:
        """Waits until all tasks have ended."""
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._on_failure(task.get_name(), error)
