"""What hosts, neighbours and the coordinator say to each other while an operator moves, and what a machine
wants done.

A stream has the name of its upstream, a sink that of its downstream. The transport says who sent a message,
and a sender is believed only about itself; only the coordinator says that another host is gone.
"""

from dataclasses import dataclass

from node_agent.migration.live.values import Item, Order, Savepoint

# Coordinator and hosts.


@dataclass(frozen=True, slots=True)
class Expect:
    """To the target: keep room for this operator."""

    order: Order


@dataclass(frozen=True, slots=True)
class Expecting:
    migration: int


@dataclass(frozen=True, slots=True)
class Migrate:
    """To the owner: hand the operator over."""

    order: Order


@dataclass(frozen=True, slots=True)
class Finished:
    """``outcome``: ``moved``, or why the operator stays where it is."""

    migration: int
    outcome: str


@dataclass(frozen=True, slots=True)
class Appoint:
    """The other host of the migration is gone: ``host`` is the owner in that term."""

    term: int
    host: str


@dataclass(frozen=True, slots=True)
class Appointed:
    """The sender goes on in that term; neighbours may be told. A host that was released says otherwise."""

    term: int


@dataclass(frozen=True, slots=True)
class Here:
    """The sender has started again, and has lost what was on its way to it. ``migration``: the one it takes
    part in, or 0."""

    migration: int


# Old and new host.


@dataclass(frozen=True, slots=True)
class Offer:
    migration: int
    savepoint: Savepoint


@dataclass(frozen=True, slots=True)
class Refused:
    migration: int
    reason: str


@dataclass(frozen=True, slots=True)
class Fetch:
    """Asks for chunks of immutable state."""

    migration: int
    first: int
    count: int


@dataclass(frozen=True, slots=True)
class Chunk:
    migration: int
    index: int
    data: bytes


@dataclass(frozen=True, slots=True)
class StateKept:
    """The immutable state is complete and its digest right."""

    migration: int


@dataclass(frozen=True, slots=True)
class Copy:
    """Buffered input of a stream."""

    migration: int
    stream: str
    items: tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class Standpoint:
    """A later savepoint: the owner may die from now on, and the other host begins there."""

    migration: int
    savepoint: Savepoint


@dataclass(frozen=True, slots=True)
class Kept:
    """Input before that savepoint is not needed by the sender any more."""

    migration: int
    savepoint: Savepoint


@dataclass(frozen=True, slots=True)
class Ready:
    """All state is here."""

    migration: int


@dataclass(frozen=True, slots=True)
class Start:
    """The receiver is the owner, from this boundary on. ``outputs``: the last ones, which some sink may not
    have."""

    migration: int
    savepoint: Savepoint
    outputs: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class Release:
    """The receiver is not needed any more and forgets the operator."""

    migration: int


@dataclass(frozen=True, slots=True)
class Released:
    migration: int


# Hosts and neighbours.


@dataclass(frozen=True, slots=True)
class StreamTo:
    """The owner asks an upstream to stream to another host too. ``since``: from that position on; 0: from the
    next item on."""

    host: str
    since: int = 0


@dataclass(frozen=True, slots=True)
class StreamsTo:
    """To the owner: which item the host got first."""

    host: str
    first: int


@dataclass(frozen=True, slots=True)
class Begins:
    """To the new host: which item comes first."""

    first: int


@dataclass(frozen=True, slots=True)
class StopTo:
    host: str


@dataclass(frozen=True, slots=True)
class Items:
    items: tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class Trim:
    """The owner needs nothing up to this position any more, nor does the host beside it."""

    upto: int


@dataclass(frozen=True, slots=True)
class Hail:
    """The sender says that it is the owner in that term. ``since``: an upstream streams from there on."""

    term: int
    since: int = 0


@dataclass(frozen=True, slots=True)
class Succeed:
    """The owner names its successor."""

    term: int
    host: str


@dataclass(frozen=True, slots=True)
class Moved:
    """An upstream says that it takes the receiver for the owner. ``linked``: whether it streams to it."""

    term: int
    linked: bool


@dataclass(frozen=True, slots=True)
class Welcome:
    """A sink says that it takes the receiver for the owner, and which output it wants next."""

    term: int
    following: int


@dataclass(frozen=True, slots=True)
class Superseded:
    """Another host is the owner."""

    term: int
    owner: str


@dataclass(frozen=True, slots=True)
class Outputs:
    first: int
    payloads: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Ack:
    """The sink has all outputs up to this one."""

    upto: int


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
