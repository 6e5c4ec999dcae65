"""What a delivery core wants done: values that whoever owns the core carries out, in order."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from node_agent.apps.dataflow.delivery.positions import Range
from node_agent.apps.dataflow.model.tuples import StreamTuple
from node_agent.apps.dataflow.windows.units import Unit

Ranges = Mapping[str, Sequence[Range]]
"""By stream."""


class Process(Struct, frozen=True):
    """Have the operator, or the user of a sink, process these one by one; then call ``processed_each``."""

    upstream: str
    items: Sequence[StreamTuple]


class ProcessUnit(Struct, frozen=True):
    """Have the operator process ``unit``, then call ``processed``."""

    unit: Unit


class Send(Struct, frozen=True):
    """``floors``: by stream, the position up to which everything is known to be done."""

    downstream: str
    replica: str
    items: Sequence[StreamTuple]
    floors: Mapping[str, int]


class Acknowledge(Struct, frozen=True):
    """To a replica upstream. ``taken``: this replica has them and needs them no more on the connection."""

    replica: str
    done: Ranges
    taken: Ranges


class Ask(Struct, frozen=True):
    """Ask a replica upstream what it knows to be done: this one holds something that goes nowhere."""

    replica: str


class Settle(Struct, frozen=True):
    """Tell a replica downstream up to where everything is done, by stream, whoever did it.

    ``ends``: of streams that are done to the end, their last item, which tells when they ended.
    """

    downstream: str
    replica: str
    floors: Mapping[str, int]
    ends: Sequence[StreamTuple]


class Forward(Struct, frozen=True):
    """Pass items that ``sender`` sent on to a sibling, in the sender's name."""

    sibling: str
    sender: str
    upstream: str
    items: Sequence[StreamTuple]


class Drop(Struct, frozen=True):
    """``item`` will not be sent (again) to ``downstream``. It may have arrived where it was sent before."""

    downstream: str | None
    item: StreamTuple
    reason: str


class PushBack(Struct, frozen=True):
    """A source should stop emitting: there is no room. Operators are given no more work by themselves."""


class Resume(Struct, frozen=True):
    """There is room again."""


Effect = Process | ProcessUnit | Send | Acknowledge | Ask | Settle | Forward | Drop | PushBack | Resume
