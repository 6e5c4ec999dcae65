"""When a source makes its next tuple: so many times a second, or as soon as its output has room for one.

The runtime asks a source that saturates for a tuple only when this tuple would leave next. So what it emits
tells how much the path carries, and nothing waits at the source until it is stale.
"""

from math import inf
from typing import Annotated, Any, Literal

from msgspec import Meta

from node_agent.apps.dataflow.operators.registry import Context

Saturate = Literal["saturate"]
SATURATE: Saturate = "saturate"
Rate = Annotated[float, Meta(gt=0, le=100_000)] | Saturate
"""Tuples per second, or as many as the path takes."""

LEAST_GAP = 1e-4
"""Seconds between tuples of a source that saturates a path on which nothing takes time: the virtual clock
must not stand still.
"""


def saturates(params: Any) -> bool:
    """Whether a source with these parameters, of any kind, saturates."""
    return getattr(params, "rate", None) == SATURATE


class Pace:
    """Lets a source wait until its next tuple is due."""

    def __init__(self, rate: Rate, context: Context) -> None:
        self._rate = rate
        self._context = context
        self._start: float | None = None
        self._last = -inf

    async def until_due(self, tau: int) -> None:
        """Waits for the moment of tuple ``tau``; a source that saturates is asked when that has come."""
        context = self._context
        if self._rate == SATURATE:
            if context.time() <= self._last:
                await context.sleep(LEAST_GAP)
            self._last = context.time()
            return
        if self._start is None:
            self._start = context.time()
        # Counted from the start: late wake-ups must not accumulate.
        due = self._start + (tau - 1) / self._rate
        await context.sleep(max(0.0, due - context.time()))
