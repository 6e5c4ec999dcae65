"""Runs blocking work in daemon threads and awaits it, so that a host that hangs delays nobody."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


def in_thread(work: Callable[[], T]) -> "Future[T]":
    future: Future[T] = Future()
    future.set_running_or_notify_cancel()  # cancelling the wait does not undo the work

    def do() -> None:
        try:
            result = work()
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(result)

    threading.Thread(target=do, daemon=True).start()
    return future


async def bounded(work: Callable[[], T], abort: Callable[[], None], seconds: float) -> T:
    """Awaits the work, within a time limit. Raises TimeoutError. Aborts given-up work in another thread, as
    that may block, too.
    """
    doing = in_thread(work)
    try:
        async with asyncio.timeout(seconds):
            return await asyncio.wrap_future(doing)
    finally:
        if not doing.done():
            in_thread(abort)
