"""What the two ends of a link say to each other, as the headers of frames.

The opener of a link sends data, its acceptor says what it has taken; either may send control messages, which
are small, need no credit, and are lost with the connection: who sends them says them again.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct

from node_agent.apps.dataflow.model.tuples import StreamTuple, Whole

PROTOCOL_VERSION = 4


class Pair(NamedTuple):
    """The replicas that a link connects."""

    sender: str
    receiver: str


class Hello(Struct, frozen=True, array_like=True, tag="hello"):
    """First frame of a connection, from the replica ``sender`` to ``receiver``; the run is in its key."""

    version: int
    sender: str
    receiver: str

    @property
    def pair(self) -> Pair:
        return Pair(self.sender, self.receiver)


class Welcome(Struct, frozen=True, array_like=True, tag="welcome"):
    """The answer to a hello that was accepted: how much may be sent that is not known to be taken."""

    items: Whole
    bytes: Whole


class Alive(Struct, frozen=True, array_like=True, tag="alive"):
    """Said every now and then, and when there is news: how many items of this connection were taken."""

    taken: Whole = 0


class Outside(NamedTuple):
    """A payload that follows the header: of which item, how long, and its SHA-256."""

    item: Whole
    size: Whole
    digest: bytes


class PassedOn(NamedTuple):
    """Of items that a sibling passes on: the replica they are from, and, where units are put together without
    acknowledgement, which units of theirs were made: the first and the last of each range."""

    sender: str
    made: Sequence[tuple[Whole, Whole]] = ()


class Data(Struct, frozen=True, array_like=True, tag="data"):
    """Items whose payloads are small, whole; the payloads of the others follow one after another.

    ``floors``: up to where each stream is done. ``passed_on``: if they are not of the replica that opened the
    link.
    """

    items: Sequence[StreamTuple]
    outside: Sequence[Outside] = ()
    floors: Mapping[str, Whole] = {}
    passed_on: PassedOn | None = None


Ranges = Mapping[str, Sequence[tuple[Whole, Whole]]]
"""First and last position of each range, both included, by stream."""


class Acknowledgement(Struct, frozen=True, array_like=True, tag="acknowledgement"):
    """Upstream: what is done, whoever did it, and what this replica has taken charge of."""

    done: Ranges = {}
    taken: Ranges = {}


class Ask(Struct, frozen=True, array_like=True, tag="ask"):
    """Upstream: say what is done."""


class Settled(Struct, frozen=True, array_like=True, tag="settled"):
    """Downstream, outside any batch: up to where streams are done, and the last items of what has ended."""

    floors: Mapping[str, Whole]
    ends: Sequence[StreamTuple] = ()


Message = Acknowledgement | Ask | Settled
Header = Alive | Data | Message


class Batch(NamedTuple):
    """Items as they arrive; ``sender`` is the replica they are from. ``made``: see ``PassedOn``."""

    sender: str
    items: Sequence[StreamTuple]
    floors: Mapping[str, int]
    made: Sequence[tuple[int, int]] = ()
