"""Counts and reports, by reason, what an operator cannot use and continues after."""

from collections import Counter
from collections.abc import Iterator

from node_agent.apps.dataflow.events import OperatorFault
from node_agent.apps.dataflow.faces.frames import BadFrame, Frame, decode_frame
from node_agent.apps.dataflow.operators.registry import Context
from node_agent.apps.dataflow.windows.units import Unit

_LONGEST = 200


class Faults:
    def __init__(self, context: Context) -> None:
        self._context = context
        self._counts: Counter[str] = Counter()

    def count(self, what: str, error: Exception) -> None:
        """Counts ``what``; the report includes the present error."""
        self._counts[what] += 1
        reason = f"{what}: {error}"[:_LONGEST]
        self._context.record(OperatorFault(self._context.replica, reason, self._counts[what]))

    def frames(self, unit: Unit) -> Iterator[tuple[bytes, Frame]]:
        """Yields the payloads that are frames, with the frames; counts the others."""
        for payload in unit.payloads():
            try:
                yield payload, decode_frame(payload)
            except BadFrame as error:
                self.count("bad_frame", error)
