"""Asks nodes for their metrics on behalf of many: one question to a node at a time, answers kept briefly."""

import asyncio
import time
from collections.abc import Callable

from node_agent.telemetry.metrics import Sample
from orchestrator.runs.backend import Backend, NodeNotSeen

FRESH_S = 0.5
"""An answer is given to everybody who asks within this time."""
ASK_S = 3.5
"""A little more than a backend waits for its agent."""
MOST_SILENT = 3
SILENT_S = 10.0
"""A node that let so many questions time out is asked again after this time: it may be of an older version,
and answer each with an error.
"""
_TIMED_OUT_S = 2.0

Samples = tuple[Sample, ...]


class MetricsDesk:
    def __init__(self, backend: Backend, now: Callable[[], float] = time.monotonic) -> None:
        self._backend = backend
        self._now = now
        self._asking: dict[str, asyncio.Task[Samples]] = {}
        self._answered: dict[str, tuple[float, Samples]] = {}
        self._silent: dict[str, tuple[float, int]] = {}

    async def ask(self, node: str) -> Samples:
        """Returns the node's samples. Raises NodeNotSeen."""
        if node not in {outcome.node for outcome in self._backend.seen().nodes}:
            raise NodeNotSeen("the run has no such node, or it has not come up yet")
        at, samples = self._answered.get(node, (-FRESH_S, ()))
        if self._now() - at < FRESH_S:
            return samples
        asking = self._asking.get(node)
        if asking is None:
            asking = asyncio.create_task(self._ask(node))
            self._asking[node] = asking
            asking.add_done_callback(lambda done: self._done(node, done))
        # Who asked first may leave: the others still get the answer.
        return await asyncio.shield(asking)

    async def close(self) -> None:
        asking = list(self._asking.values())
        for task in asking:
            task.cancel()
        if asking:
            await asyncio.wait(asking)

    async def _ask(self, node: str) -> Samples:
        since, times = self._silent.get(node, (0.0, 0))
        if times >= MOST_SILENT and self._now() - since < SILENT_S:
            raise NodeNotSeen(f"{node} has not answered lately")
        begun = self._now()
        try:
            async with asyncio.timeout(ASK_S):
                samples = await self._backend.metrics(node)
        except TimeoutError:
            self._silent[node] = self._now(), times + 1
            raise NodeNotSeen(f"{node} did not answer within {ASK_S:g} s") from None
        except NodeNotSeen:
            if self._now() - begun >= _TIMED_OUT_S:
                self._silent[node] = self._now(), times + 1
            raise
        self._silent.pop(node, None)
        self._answered[node] = self._now(), samples
        return samples

    def _done(self, node: str, done: asyncio.Task[Samples]) -> None:
        self._asking.pop(node, None)
        if not done.cancelled():
            done.exception()  # marks it as retrieved: those who asked may be gone
