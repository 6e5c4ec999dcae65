"""The ends of the chain for the throughput benchmark: agents import this file, like a user's.

The source has its next tuple ready whenever it is asked. The sink prints on standard error when a tenth of
all tuples has reached it, and when all have.
"""

import sys
from collections.abc import Sequence

from msgspec import Struct

from node_agent.apps.dataflow.operators.registry import OPERATORS, Context, OperatorKind
from node_agent.apps.dataflow.windows.units import Unit


class FloodParams(Struct, frozen=True, forbid_unknown_fields=True):
    """``size`` is in bytes, at least 8."""

    count: int
    size: int


class Flood:
    def __init__(self, params: FloodParams, context: Context) -> None:
        self._count = params.count
        self._size = params.size

    async def next(self, tau: int) -> bytes | None:
        # Every payload is a new object, so that caches do not help.
        return tau.to_bytes(8, "big") + bytes(self._size - 8) if tau <= self._count else None


class TallyParams(Struct, frozen=True, forbid_unknown_fields=True):
    count: int


class Tally:
    def __init__(self, params: TallyParams, context: Context) -> None:
        self._marks = {max(1, params.count // 10): "warm", params.count: "done"}
        self._came = 0

    async def process(self, unit: Unit) -> Sequence[bytes]:
        self._came += 1
        if self._came in self._marks:
            print(self._marks[self._came], file=sys.stderr, flush=True)
        return ()


FLOOD = OperatorKind("flood", "source", FloodParams, Flood)
TALLY = OperatorKind("tally", "sink", TallyParams, Tally)
OPERATORS.register("flood", FLOOD)
OPERATORS.register("tally", TALLY)
