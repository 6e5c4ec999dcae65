"""What neighbours tell each other, and what a node writes down of it.

Instances and requests are numbered per neighbour and kept until acknowledged. Marks are not: the newest ones
replace all others, so they are made when there is a contact. A mark is sent after everything that waited
before it.
"""

from msgspec import Struct

from node_agent.apps.comet.events import Instance

Key = tuple[str, int]
"""An instance's event and number."""
Bounds = dict[str, tuple[float, float]]
"""For each event asked for: the earliest start and the latest end of its instances."""


def key_of(instance: Instance) -> Key:
    return instance.event, instance.number


class Carry(Struct, frozen=True, array_like=True, tag="carry"):
    """An instance, for these streams. ``hollow``: its content was dropped; that it occurred is known."""

    instance: Instance
    streams: tuple[int, ...]
    hollow: bool = False


class Also(Struct, frozen=True, array_like=True, tag="also"):
    """An instance that went to this neighbour before, for further streams."""

    event: str
    number: int
    streams: tuple[int, ...]


class Ask(Struct, frozen=True, array_like=True, tag="ask"):
    """A request, the ``number``-th of its stream, for matches whose instances are within the bounds."""

    stream: int
    number: int
    bounds: Bounds


Message = Carry | Also | Ask


class Mark(Struct, frozen=True, array_like=True):
    """How complete a stream is.

    Everything that ends before ``time`` and that the stream will ever carry has been sent. Of the first
    ``asks`` requests, everything that ends before ``seen`` has been sent.
    """

    time: float
    asks: int = 0
    seen: float = float("-inf")

    def joined(self, other: "Mark") -> "Mark":
        """What is known if both are said."""
        return Mark(max(self.time, other.time), max(self.asks, other.asks), max(self.seen, other.seen))


NOTHING = Mark(float("-inf"))


class Marks(Struct, frozen=True, array_like=True, tag="marks"):
    """``up``: of streams that come this way. ``down``: nothing that starts before will be asked for again."""

    up: dict[int, Mark]
    down: dict[int, float]


class Opened(Struct, frozen=True, array_like=True, tag="opened"):
    """The sources of the node opened for the first time."""

    now: float


class Occurred(Struct, frozen=True, array_like=True, tag="occurred"):
    """An event occurred on this node, and everything that occurred here before it has been told."""

    instance: Instance


class Received(Struct, frozen=True, array_like=True, tag="received"):
    """A neighbour's message with its number."""

    now: float
    neighbour: str
    number: int
    message: Message


class Heard(Struct, frozen=True, array_like=True, tag="heard"):
    """A neighbour's marks."""

    now: float
    neighbour: str
    marks: Marks


class Acknowledged(Struct, frozen=True, array_like=True, tag="acknowledged"):
    """A neighbour has everything up to a number."""

    now: float
    neighbour: str
    number: int


class Passed(Struct, frozen=True, array_like=True, tag="passed"):
    """Time passed. Everything that occurred here before ``now`` has been told."""

    now: float


class Told(Struct, frozen=True, array_like=True, tag="told"):
    """The first ``detections`` detections of this node have been handed over."""

    now: float
    detections: int


Entry = Opened | Occurred | Received | Heard | Acknowledged | Passed | Told
"""Everything that changes a node. The same entries in the same order make the same node."""
