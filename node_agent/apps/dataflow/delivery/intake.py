"""Takes tuples from a source, and hands on together those that are ready at once."""

import asyncio
from collections.abc import Callable

from node_agent.apps.dataflow.operators.processing import CannotBeSent, GivenUp
from node_agent.apps.dataflow.operators.registry import Context, Source
from node_agent.apps.dataflow.windows.batcher import Batcher
from node_agent.apps.dataflow.wire.packing import unfit

Captured = tuple[tuple[bytes, ...], int]
"""A payload, empty if it was given up, and when it was captured, in nanoseconds."""


MOST_BYTES = 256 * 1024
"""Tuples that are taken together have at most this many bytes, unless it is one tuple."""


class Intake:
    """``hand_on`` gets what was captured; ``give_up`` gets the reason why the last of it has no payload."""

    def __init__(
        self,
        source: Source,
        context: Context,
        hand_on: Callable[[list[Captured]], None],
        give_up: Callable[[GivenUp], None],
    ) -> None:
        self._source = source
        self._context = context
        self._give_up = give_up
        self._number = 1
        self._captured = Batcher[Captured](lambda captured, took: hand_on(captured))

    async def take(self, most: int) -> bool:
        """Waits for the next tuples, at most ``most``, and hands them on. Returns False if there are no more.

        Raises CannotBeSent for a payload that is too large, if the source's policy is to stop then.
        """
        captured, size = self._captured, 0
        capture, now_ns = self._source.next, self._context.now_ns
        captured.begin()
        for _ in range(most):
            payload = await capture(self._number)
            if payload is None:
                captured.flush()
                return False
            self._number += 1
            payloads = (payload,)
            if (why := unfit(payloads)) is not None:
                self._go_on_without(CannotBeSent(why))
                continue
            size += len(payload)
            if captured.add((payloads, now_ns())) or size >= MOST_BYTES:
                break
        captured.flush()
        if captured.alone:
            await asyncio.sleep(0)
        return True

    def _go_on_without(self, error: CannotBeSent) -> None:
        spec = self._context.spec
        if spec is None or spec.on_error.then == "stop":
            raise error
        self._captured.add(((), self._context.now_ns()))
        self._captured.flush()
        self._give_up(GivenUp(error))
