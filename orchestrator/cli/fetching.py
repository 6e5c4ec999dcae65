"""Lets a run's process bring the records of remote nodes here, for as long as a verb watches the run."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from orchestrator.live.door import Watching
from orchestrator.runs.run_directory import RunDirectory

END_S = 2.0


@contextmanager
def fetching(directory: RunDirectory) -> Iterator[None]:
    """Keeps a connection to the run's door in a thread. A run that has ended is no error."""
    loop = asyncio.new_event_loop()
    ended = asyncio.Event()

    async def hold() -> None:
        async with Watching(directory):
            await ended.wait()

    def work() -> None:
        try:
            loop.run_until_complete(hold())
        finally:
            loop.close()

    thread = threading.Thread(target=work, name="fetching", daemon=True)
    thread.start()
    try:
        yield
    finally:
        if not loop.is_closed():
            loop.call_soon_threadsafe(ended.set)
        thread.join(END_S)
