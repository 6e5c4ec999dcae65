"""The query that flows while agents are under siege: agents import this file, like a user's.

Every payload contains its position and a proof that the source made it, so that the sink detects forgeries.
"""

import hmac
import time
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from node_agent.apps.dataflow.operators.registry import OPERATORS, Context, OperatorKind
from node_agent.apps.dataflow.windows.units import Unit

SECRET = b"known to the source and to who checks"


def payload_of(tau: int) -> bytes:
    return b"%d %s" % (tau, hmac.digest(SECRET, b"%d" % tau, "sha256").hex().encode())


class BeatParams(Struct, frozen=True, forbid_unknown_fields=True):
    rate: float


class Beat:
    def __init__(self, params: BeatParams, context: Context) -> None:
        self._rate = params.rate
        self._context = context
        self._start: float | None = None

    async def next(self, tau: int) -> bytes | None:
        if self._start is None:
            self._start = self._context.time()
        due = self._start + (tau - 1) / self._rate
        await self._context.sleep(max(0.0, due - self._context.time()))
        return payload_of(tau)


class LedgerParams(Struct, frozen=True, forbid_unknown_fields=True):
    file: str


class Ledger:
    """Writes down what it gets, one line each."""

    def __init__(self, params: LedgerParams, context: Context) -> None:
        self._file = Path(params.file).open("ab", buffering=0)  # noqa: SIM115

    async def process(self, unit: Unit) -> Sequence[bytes]:
        for payload in unit.payloads():
            self._file.write(b"%d %s\n" % (time.monotonic_ns(), payload.replace(b"\n", b"?")[:200]))
        return ()


BEAT = OperatorKind("beat", "source", BeatParams, Beat)
LEDGER = OperatorKind("ledger", "sink", LedgerParams, Ledger)
OPERATORS.register("beat", BEAT)
OPERATORS.register("ledger", LEDGER)
