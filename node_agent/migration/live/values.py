"""What moves: an operator's immutable state in chunks, its buffered input, and where its windows stand.

An operator is deterministic: its outputs depend on the sequences of its inputs and on nothing else, not on
how the inputs arrive beside each other either. So its windows and variables need not be copied. Another host
makes them again from a savepoint and the input since then, and numbers the outputs in the same way.

Types of fields have bounds: ``wire`` and ``disk`` check them when they read what another machine or a file
says.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from typing import Annotated, NamedTuple, Protocol, TypeVar

from msgspec import Meta

from node_agent.model.checked import Whole

Name = Annotated[str, Meta(min_length=1, max_length=200)]
Word = Annotated[str, Meta(max_length=200)]
"""Why something is so; or a name, or none."""
Number = Annotated[int, Meta(ge=1, le=2**62)]
Time = Annotated[float, Meta(ge=0)]
"""Seconds; may be endless."""
MOST_NEIGHBOURS = 256
MOST_AT_ONCE = 8192
"""Items or outputs of one message."""
MOST_NOTE = 64 * 1024
Names = Annotated[tuple[Name, ...], Meta(max_length=MOST_NEIGHBOURS)]
T = TypeVar("T")


class Item(NamedTuple):
    """``position``: 1, 2, 3 … in its stream."""

    position: Number
    payload: bytes


@dataclass(frozen=True, slots=True)
class Savepoint:
    """A boundary between selections, from which an operator can be started again.

    ``inputs``: by stream, the last position that is not needed any more. ``outputs``: how many were made
    before. ``at``: the operator's own note about its windows.
    """

    inputs: Annotated[tuple[tuple[Name, Whole], ...], Meta(max_length=MOST_NEIGHBOURS)]
    outputs: Whole = 0
    at: Annotated[bytes, Meta(max_length=MOST_NOTE)] = b""

    def position(self, stream: str) -> int:
        return dict(self.inputs).get(stream, 0)

    @property
    def age(self) -> tuple[int, int]:
        """Orders the savepoints of one operator: both numbers only grow."""
        return self.outputs, sum(position for _, position in self.inputs)


class Movable(Protocol):
    """An operator that can move."""

    def push(self, stream: str, item: Item) -> Sequence[bytes] | None:
        """Takes the next item of a stream. Returns the outputs that it causes, in order; None if it has not
        taken the item yet, because it takes its time: ``Host.go_on`` asks again."""
        ...

    @property
    def at_boundary(self) -> bool:
        """Whether no selection is open, so that ``boundary`` is where it stands now."""
        ...

    def boundary(self) -> Savepoint:
        """Returns the last boundary that it has passed."""
        ...


Build = Callable[[bytes, Savepoint], Movable]
"""Makes an operator of its immutable state, as it was at a savepoint. The input since then follows."""


class Method(StrEnum):
    """``live``: the old host works until all is at the new one. ``stop_and_copy``: it stops first."""

    LIVE = "live"
    STOP_AND_COPY = "stop_and_copy"


@dataclass(frozen=True, slots=True)
class Card:
    """Describes immutable state: SHA-256 in hexadecimal digits, and bytes."""

    digest: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
    size: Whole
    chunk: Annotated[int, Meta(ge=1, le=1024**2)] = 64 * 1024

    @property
    def chunks(self) -> int:
        return -(-self.size // self.chunk)

    def length(self, index: int) -> int:
        """How many bytes a chunk has."""
        return min(self.chunk, self.size - index * self.chunk)


def card_of(data: bytes, chunk: int = 64 * 1024) -> Card:
    return Card(sha256(data).hexdigest(), len(data), chunk)


@dataclass(frozen=True, slots=True)
class Order:
    """A migration. The coordinator numbers them 1, 2, 3 …

    ``deadline``: when the new host should have taken over. ``bandwidth``: bytes a second from the old host to
    the new one, as far as known. ``begin_at``: when copying begins. ``give_up_at``: when an unfinished
    migration is given up.
    """

    migration: Number
    source: Word
    target: Name
    card: Card
    streams: Names
    sinks: Names
    deadline: Time = float("inf")
    method: Method = Method.LIVE
    begin_at: Time = 0.0
    bandwidth: Annotated[float, Meta(gt=0)] = float("inf")
    give_up_at: Time = float("inf")

    @property
    def term(self) -> int:
        """The term in which the target is the owner."""
        return 2 * self.migration

    @property
    def neighbours(self) -> tuple[str, ...]:
        return (*self.streams, *self.sinks)


@dataclass(frozen=True, slots=True)
class Limits:
    """``most_state``: bytes of immutable state that a target takes. ``items`` and ``bytes``: of each stream,
    buffered at a host. ``pending``: outputs that sinks have not acknowledged. ``window``: chunks under way.
    ``batch``, ``batch_bytes``: items in a message, and bytes, which the last item may exceed.
    ``start_bytes``: of outputs that are handed over; if there are more, the new host makes them again.
    ``grain``: items after which a new savepoint is kept. ``note``: bytes of an operator's note. ``step``:
    seconds before it is due by which copying of buffers begins. ``patience``: seconds that the old host waits
    for a boundary between selections."""

    most_state: int = 4 * 1024**3
    items: int = 65_536
    bytes: int = 256 * 1024**2
    pending: int = 4096
    window: int = 16
    batch: int = 64
    batch_bytes: int = 256 * 1024
    start_bytes: int = 512 * 1024
    grain: int = 32
    note: int = MOST_NOTE
    step: float = 1.0
    patience: float = 5.0


DEFAULT_LIMITS = Limits()


def batches(each: Iterable[T], size: Callable[[T], int], limits: Limits) -> Iterator[tuple[T, ...]]:
    """What goes into one message each, in order."""
    batch: list[T] = []
    held = 0
    for one in each:
        batch.append(one)
        held += size(one)
        if len(batch) >= limits.batch or held >= limits.batch_bytes:
            yield tuple(batch)
            batch, held = [], 0
    if batch:
        yield tuple(batch)


def item_size(item: Item) -> int:
    return len(item.payload)
