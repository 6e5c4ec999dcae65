"""Assembles items to units, which an operator processes at once, with pure state machines.

A unit is returned once, when it is complete, in whatever order and however often its items arrive. The caller
reports when a unit is ``done``. Inputs that no unit needs any more are then ``released``, and acknowledged
upstream.
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
    """Assembles the units of one replica; deterministic. Holds only what unfinished units need."""

    def add(self, upstream: str, item: StreamTuple) -> list[Unit]:
        """Takes an item that arrived from ``upstream``. Returns the units that it completes, in order.

        Ignores items that arrived before; if they were released, they are released again.
        """
        ...

    def done(self, origin: str, tau: int) -> None:
        """The result of that unit has reached everything that needs it."""
        ...

    def settled(self, upstream: str, origin: str, until: int) -> None:
        """Upstream knows that all positions up to ``until`` are done: they will not arrive (again).

        Then every unit that needs any of them is done, here or elsewhere. A replica that takes over in
        mid-stream must get this report for each stream, to know which units it need not wait for. It must
        also be sent the end of a stream that has ended, even if that is done.
        """
        ...

    def floor(self) -> int:
        """Returns the unit up to which all units are known to be done, from what was settled."""
        ...

    def released(self) -> list[Position]:
        """Takes out what no unit here needs any more since the last call. Call it after any of the above."""
        ...

    def unused(self) -> list[StreamTuple]:
        """Takes out what was released since the last call without having been part of a complete unit."""
        ...

    def holding(self) -> list[tuple[str, StreamTuple]]:
        """Returns the items, with their inputs, that incomplete units may need, and a sibling would need
        too.
        """
        ...

    def hand_over(self) -> HandedOver:
        """Takes out what ``holding`` returns, as if it had never arrived: a sibling makes those units.

        Only the ends of streams stay here too. In best effort only.
        """
        ...

    def made_elsewhere(self, upstream: str, items: Sequence[StreamTuple], made: Iterable[Units]) -> None:
        """Notes that ``items``, which a sibling hands over, were already used for the units ``made``.

        Must be called before the items are added.
        """
        ...

    def held(self, upstream: str, origin: str) -> int:
        """Returns how many items of that stream have arrived and are not released."""
        ...


def assembler_for(
    spec: OperatorSpec, origins: Mapping[str, tuple[str, ...]], gaps: Gaps | None = None
) -> Assembler:
    """Returns the assembler for an operator. ``origins``: the streams that each operator sends
    (``Query.origins``).

    Without ``gaps`` a unit waits for its items for ever: they are sent again until they arrive.
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
