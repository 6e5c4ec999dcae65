"""What a delivery core wants done: values that the owner of the core carries out, in order."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from node_agent.apps.dataflow.delivery.positions import Range
from node_agent.apps.dataflow.model.tuples import StreamTuple
from node_agent.apps.dataflow.windows.units import Unit

Ranges = Mapping[str, Sequence[Range]]
"""By stream."""


class Process(Struct, frozen=True):
    """Let the operator, or the sink, process these items one by one; then call ``processed_each``."""

    upstream: str
    items: Sequence[StreamTuple]


class ProcessUnit(Struct, frozen=True):
    """Let the operator process ``unit``; then call ``processed``."""

    unit: Unit


class Send(Struct, frozen=True):
    """Send items to a replica. ``floors``: by stream, the position up to which everything is known to be
    done.
    """

    downstream: str
    replica: str
    items: Sequence[StreamTuple]
    floors: Mapping[str, int]


class Acknowledge(Struct, frozen=True):
    """Acknowledge to a replica upstream. ``taken``: positions that this replica has received and keeps."""

    replica: str
    done: Ranges
    taken: Ranges


class Ask(Struct, frozen=True):
    """Ask a replica upstream what is done: this replica holds items and makes no progress."""

    replica: str


class Settle(Struct, frozen=True):
    """Inform a replica downstream up to where each stream is done, whichever replica did it.

    ``ends``: the last item of each stream that is done to its end; it says when the stream ended.
    """

    downstream: str
    replica: str
    floors: Mapping[str, int]
    ends: Sequence[StreamTuple]


class Forward(Struct, frozen=True):
    """Pass items of ``sender`` on to a sibling, in the sender's name."""

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
    """There is no room: a source should stop emitting. The core itself gives operators no more work."""


class Resume(Struct, frozen=True):
    """There is room again."""


Effect = Process | ProcessUnit | Send | Acknowledge | Ask | Settle | Forward | Drop | PushBack | Resume
