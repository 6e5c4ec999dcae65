"""From items to units: what an operator processes at once is put together here, by pure state machines.

A unit is handed out once, when it is complete, whatever the order in which its items come and however often.
Who hands results on says when a unit is ``done``; then the inputs that no unit needs any more are
``released``, which is what is acknowledged upstream.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from node_agent.apps.dataflow.model.query import OperatorSpec
from node_agent.apps.dataflow.model.tuples import Position, StreamTuple
from node_agent.apps.dataflow.model.units import CountWindow, Each, SameTau, TimeWindow
from node_agent.apps.dataflow.windows.each import EachAssembler
from node_agent.apps.dataflow.windows.units import Gaps, HandedOver, Unit, Units
from node_agent.apps.dataflow.windows.window_rules import CountAssembler, TauAssembler, TimeAssembler


class Assembler(Protocol):
    """One per replica; deterministic. It holds no more than the units in the making and not yet done need."""

    def add(self, upstream: str, item: StreamTuple) -> list[Unit]:
        """Take an item that came over the input ``upstream``; the units that it completes, in order.

        What came before is ignored; if it has been released it is released again.
        """
        ...

    def done(self, origin: str, tau: int) -> None:
        """The result of that unit has reached whoever needs it."""
        ...

    def settled(self, upstream: str, origin: str, until: int) -> None:
        """Upstream knows that all positions up to ``until`` are done: they will not come (again).

        Every unit that needs any of them has been done, here or elsewhere, then. A replica that takes over in
        mid-stream must be told of each stream where it begins, to know which units it need not wait for; and
        be sent the end of a stream that has ended, even if that is done.
        """
        ...

    def floor(self) -> int:
        """All units up to this one are known to be done, by what was settled."""
        ...

    def released(self) -> list[Position]:
        """Take what no unit here needs any more since the last call. To be called after any of the above."""
        ...

    def unused(self) -> list[StreamTuple]:
        """Take what was released since the last call without having been part of a complete unit."""
        ...

    def holding(self) -> list[tuple[str, StreamTuple]]:
        """Items, with their inputs, that units not handed out yet may need: what a sibling would need too."""
        ...

    def hand_over(self) -> HandedOver:
        """Take out what ``holding`` tells, as if it had never come: a sibling makes those units.

        Only the ends of streams stay here, too. In best effort only.
        """
        ...

    def made_elsewhere(self, upstream: str, items: Sequence[StreamTuple], made: Iterable[Units]) -> None:
        """``items``, which a sibling hands over, have been used for those of their units that were ``made``.

        To be told before they are added.
        """
        ...

    def held(self, upstream: str, origin: str) -> int:
        """How many items of that stream have come and are not released."""
        ...


def assembler_for(
    spec: OperatorSpec, origins: Mapping[str, tuple[str, ...]], gaps: Gaps | None = None
) -> Assembler:
    """``origins``: the streams that each operator sends, see ``Query.origins``.

    Without ``gaps`` a unit waits for its items for ever: they will be sent again until they have come.
    """
    streams = tuple((upstream, origin) for upstream in spec.after for origin in origins[upstream])
    match spec.takes:
        case Each():
            return EachAssembler(gaps)
        case CountWindow() as window:
            return CountAssembler(spec.name, streams, window, gaps)
        case TimeWindow() as window:
            return TimeAssembler(spec.name, streams, window, gaps)
        case SameTau():
            return TauAssembler(spec.name, streams, gaps)
