"""The unit of work of an operator, and how long an assembler waits for what may have been lost."""

from collections.abc import Mapping
from typing import NamedTuple

from msgspec import Struct

from node_agent.apps.dataflow.model.tuples import StreamTuple


# It cannot be part of a cycle, and there are many: spare them the garbage collector.
class Unit(Struct, frozen=True, gc=False):
    """``inputs``, by input operator, in the order of the stream; the fields before it name the result.

    ``last``: all that is left to say of the stream is that it has ended; there are no inputs. Not
    ``complete``, in best effort only: given up, for something of it was lost; there is no result.
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
        """All that there is to process, input by input."""
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
        """The item of the output stream that this unit gives rise to."""
        return StreamTuple(
            self.origin, self.tau, self.prev, self.born_ns, self.prev_born_ns, payloads, self.last
        )


Units = tuple[int, int]
"""The first and the last of some."""


class HandedOver(NamedTuple):
    """Items with their inputs, and which units, of those that they may be part of, have been made."""

    items: list[tuple[str, StreamTuple]]
    made: list[Units]


class Gaps(Struct, frozen=True):
    """When to stop waiting where nothing is sent again.

    A unit that misses an item is given up after ``horizon`` more items of that item's stream have come; one
    that waits for a stream that is silent, when more than ``held`` items wait.
    """

    horizon: int = 64
    held: int = 4096
