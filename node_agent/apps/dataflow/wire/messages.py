"""What the replicas at both ends of a connection send each other, as the headers of frames.

The replica that opens a connection sends data downstream; the one that accepts it answers upstream. Either
may send control messages. They are small, need no credit, and are lost with the connection: the sender
repeats them.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct

from node_agent.apps.dataflow.model.tuples import StreamTuple
from node_agent.model.checked import Whole
from node_agent.transport.messages import Alive, Pair

PROTOCOL_VERSION = 4


class Outside(NamedTuple):
    """A payload that follows the header: of which item, how long, and its SHA-256."""

    item: Whole
    size: Whole
    digest: bytes


class PassedOn(NamedTuple):
    """Says that a sibling passes items on: ``sender`` is the replica upstream that sent them first.

    ``made``, where units are put together without acknowledgement: which of their units were made, as the
    first and the last of each range.
    """

    sender: str
    made: Sequence[tuple[Whole, Whole]] = ()


class Data(Struct, frozen=True, array_like=True, tag="data"):
    """A batch of items. Items with large payloads are without them here; ``outside`` lists what follows.

    ``floors``: up to where each stream is done. ``passed_on``: if the items are not of the replica that
    opened the connection.
    """

    items: Sequence[StreamTuple]
    outside: Sequence[Outside] = ()
    floors: Mapping[str, Whole] = {}
    passed_on: PassedOn | None = None


class DataDetails(NamedTuple):
    """What a batch says besides its items; see ``Data``."""

    floors: Mapping[str, int] = {}
    passed_on: PassedOn | None = None


Ranges = Mapping[str, Sequence[tuple[Whole, Whole]]]
"""First and last position of each range, both included, by stream."""


class Acknowledgement(Struct, frozen=True, array_like=True, tag="acknowledgement"):
    """Upstream: which positions are done, by any replica, and which this replica has taken."""

    done: Ranges = {}
    taken: Ranges = {}


class Ask(Struct, frozen=True, array_like=True, tag="ask"):
    """Upstream: asks what is done."""


class Settled(Struct, frozen=True, array_like=True, tag="settled"):
    """Downstream, outside any batch: up to where streams are done, and the last items of ended streams."""

    floors: Mapping[str, Whole]
    ends: Sequence[StreamTuple] = ()


Message = Acknowledgement | Ask | Settled
Header = Alive | Data | Message


class Batch(NamedTuple):
    """Items as a replica takes them; ``sender`` is the replica they are from. ``made``: see ``PassedOn``."""

    sender: str
    items: Sequence[StreamTuple]
    floors: Mapping[str, int]
    made: Sequence[tuple[int, int]] = ()


def batch_of(pair: Pair, data: Data) -> Batch:
    """Return what arrived over the connection of ``pair`` as the receiving replica takes it."""
    sender, made = data.passed_on or PassedOn(pair.sender)
    return Batch(sender, data.items, data.floors, made)
