"""What a source captures: tuples that are ready at once are handed on together."""

import asyncio
from collections.abc import Callable

from node_agent.dataflow.gathering import Gathering
from node_agent.dataflow.registry import Context, Source

Captured = tuple[bytes, int]
"""A payload, and when it was captured in nanoseconds."""


MOST_BYTES = 256 * 1024
"""What is taken in one go has more only if it is one tuple."""


class Intake:
    def __init__(self, source: Source, context: Context, hand_on: Callable[[list[Captured]], None]) -> None:
        self._source = source
        self._context = context
        self._number = 1
        self._captured = Gathering[Captured](lambda captured, took: hand_on(captured))

    async def take(self, most: int) -> bool:
        """Wait for the next tuples, at most ``most``, and hand them on; False: there are no more."""
        captured, size = self._captured, 0
        captured.begin()
        for _ in range(most):
            payload = await self._source.next(self._number)
            if payload is None:
                captured.flush()
                return False
            self._number += 1
            size += len(payload)
            if captured.add((payload, self._context.now_ns())) or size >= MOST_BYTES:
                break
        captured.flush()
        if captured.alone:
            await asyncio.sleep(0)
        return True
