"""The unit of work of an operator, and how long an assembler waits for items that may be lost."""

from collections.abc import Mapping
from typing import NamedTuple

from msgspec import Struct

from node_agent.apps.dataflow.model.tuples import StreamTuple


# Units are many and never part of a cycle: the garbage collector need not look at them.
class Unit(Struct, frozen=True, gc=False):
    """``inputs``: by input operator, the items in the order of the stream. The fields before it name the
    result.

    ``last``: the unit only says that the stream has ended, and has no inputs. Not ``complete`` (best effort
    only): the unit was given up because an item was lost, and has no result.
    """

    origin: str
    tau: int
    prev: int
    born_ns: int
    prev_born_ns: int
    inputs: Mapping[str, tuple[StreamTuple, ...]]
    last: bool = False
    complete: bool = True

    def payloads(self) -> list[bytes]:
        """Returns all payloads to process, input by input."""
        found: list[bytes] = []
        for items in self.inputs.values():
            for item in items:
                found += item.payloads
        return found

    @property
    def size(self) -> int:
        """Bytes of all payloads."""
        return sum(item.size for items in self.inputs.values() for item in items)

    def result(self, payloads: tuple[bytes, ...] = ()) -> StreamTuple:
        """Returns the item of the output stream that this unit results in."""
        return StreamTuple(
            self.origin, self.tau, self.prev, self.born_ns, self.prev_born_ns, payloads, self.last
        )


Units = tuple[int, int]
"""The first and the last unit of a range."""


class HandedOver(NamedTuple):
    """Items with their inputs, and which units that they may be part of were made already."""

    items: list[tuple[str, StreamTuple]]
    made: list[Units]


class Gaps(Struct, frozen=True):
    """When to stop waiting in best effort, where nothing is sent again.

    A unit that misses an item is given up after ``horizon`` more items of that stream have arrived; a unit
    that waits for a silent stream, when more than ``held`` items wait.
    """

    horizon: int = 64
    held: int = 4096
