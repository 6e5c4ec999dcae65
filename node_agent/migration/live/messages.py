"""What hosts, neighbours and the coordinator say to each other while an operator moves, and what a machine
wants done.

A stream has the name of its upstream, a sink that of its downstream. The transport says who sent a message,
and a sender is believed only about itself; only the coordinator says that another host is gone.
"""

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from node_agent.migration.live.values import (
    MOST_AT_ONCE,
    Item,
    Name,
    Number,
    Order,
    Savepoint,
    Word,
)
from node_agent.model.checked import Whole

_Items = Annotated[tuple[Item, ...], Meta(max_length=MOST_AT_ONCE)]
_Payloads = Annotated[tuple[bytes, ...], Meta(max_length=MOST_AT_ONCE)]

# Coordinator and hosts.


@dataclass(frozen=True, slots=True)
class Expect:
    """To the target: keep room for this operator."""

    order: Order


@dataclass(frozen=True, slots=True)
class Expecting:
    migration: Whole


@dataclass(frozen=True, slots=True)
class Migrate:
    """To the owner: hand the operator over."""

    order: Order


@dataclass(frozen=True, slots=True)
class Finished:
    """``outcome``: ``moved``, or why the operator stays where it is."""

    migration: Whole
    outcome: Word


@dataclass(frozen=True, slots=True)
class Appoint:
    """The other host of the migration is gone: ``host`` is the owner in that term."""

    term: Number
    host: Name


@dataclass(frozen=True, slots=True)
class Appointed:
    """The sender goes on in that term; neighbours may be told. A host that was released says otherwise."""

    term: Number


@dataclass(frozen=True, slots=True)
class Here:
    """The sender has started again, and has lost what was on its way to it. ``migration``: the one it takes
    part in, or 0."""

    migration: Whole


# Old and new host.


@dataclass(frozen=True, slots=True)
class Offer:
    migration: Whole
    savepoint: Savepoint


@dataclass(frozen=True, slots=True)
class Refused:
    migration: Whole
    reason: Word


@dataclass(frozen=True, slots=True)
class Fetch:
    """Asks for chunks of immutable state."""

    migration: Whole
    first: Whole
    count: Whole


@dataclass(frozen=True, slots=True)
class Chunk:
    migration: Whole
    index: Whole
    data: bytes


@dataclass(frozen=True, slots=True)
class StateKept:
    """The immutable state is complete and its digest right."""

    migration: Whole


@dataclass(frozen=True, slots=True)
class Copy:
    """Buffered input of a stream."""

    migration: Whole
    stream: Name
    items: _Items


@dataclass(frozen=True, slots=True)
class Standpoint:
    """A later savepoint: the owner may die from now on, and the other host begins there."""

    migration: Whole
    savepoint: Savepoint


@dataclass(frozen=True, slots=True)
class Kept:
    """Input before that savepoint is not needed by the sender any more."""

    migration: Whole
    savepoint: Savepoint


@dataclass(frozen=True, slots=True)
class Ready:
    """All state is here."""

    migration: Whole


@dataclass(frozen=True, slots=True)
class Start:
    """The receiver is the owner, from this boundary on. ``outputs``: the last ones, which some sink may not
    have."""

    migration: Whole
    savepoint: Savepoint
    outputs: _Payloads = ()


@dataclass(frozen=True, slots=True)
class Release:
    """The receiver is not needed any more and forgets the operator."""

    migration: Whole


@dataclass(frozen=True, slots=True)
class Released:
    migration: Whole


# Hosts and neighbours.


@dataclass(frozen=True, slots=True)
class StreamTo:
    """The owner asks an upstream to stream to another host too. ``since``: from that position on; 0: from the
    next item on."""

    host: Name
    since: Whole = 0


@dataclass(frozen=True, slots=True)
class StreamsTo:
    """To the owner: which item the host got first."""

    host: Name
    first: Number


@dataclass(frozen=True, slots=True)
class Begins:
    """To the new host: which item comes first."""

    first: Number


@dataclass(frozen=True, slots=True)
class StopTo:
    host: Name


@dataclass(frozen=True, slots=True)
class Items:
    items: _Items


@dataclass(frozen=True, slots=True)
class Trim:
    """The owner needs nothing up to this position any more, nor does the host beside it."""

    upto: Whole


@dataclass(frozen=True, slots=True)
class Hail:
    """The sender says that it is the owner in that term. ``since``: an upstream streams from there on."""

    term: Number
    since: Whole = 0


@dataclass(frozen=True, slots=True)
class Succeed:
    """The owner names its successor."""

    term: Number
    host: Name


@dataclass(frozen=True, slots=True)
class Moved:
    """An upstream says that it takes the receiver for the owner. ``linked``: whether it streams to it."""

    term: Number
    linked: bool


@dataclass(frozen=True, slots=True)
class Welcome:
    """A sink says that it takes the receiver for the owner, and which output it wants next."""

    term: Number
    following: Number


@dataclass(frozen=True, slots=True)
class Superseded:
    """Another host is the owner."""

    term: Number
    owner: Name


@dataclass(frozen=True, slots=True)
class Outputs:
    first: Number
    payloads: _Payloads


@dataclass(frozen=True, slots=True)
class Ack:
    """The sink has all outputs up to this one."""

    upto: Whole


FromCoordinator = Expect | Migrate | Appoint
BetweenHosts = (
    Here
    | Offer
    | Refused
    | Fetch
    | Chunk
    | StateKept
    | Copy
    | Standpoint
    | Kept
    | Ready
    | Start
    | Release
    | Released
)
ToNeighbour = StreamTo | StopTo | Trim | Hail | Succeed | Outputs | Appoint
FromNeighbour = StreamsTo | Begins | Items | Moved | Welcome | Superseded | Ack
Message = FromCoordinator | BetweenHosts | ToNeighbour | FromNeighbour | Expecting | Finished | Appointed


# What a machine wants done, in this order.


@dataclass(frozen=True, slots=True)
class Sent:
    to: str
    message: Message


@dataclass(frozen=True, slots=True)
class Keep:
    """Write the journal before anything that follows is done."""

    journal: object


@dataclass(frozen=True, slots=True)
class Store:
    """Write the immutable state before anything that follows is done."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Deliver:
    """A sink got these outputs, which come next in order."""

    first: int
    payloads: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Note:
    """What is worth telling: ``began``, ``state_kept``, ``deadline_missed``, ``handed_over``, ``took_over``
    (the target), ``took_back`` (the old host, as the target is gone), ``finished``, ``superseded``."""

    what: str
    migration: int
    detail: str = ""


Effect = Sent | Keep | Store | Deliver | Note
