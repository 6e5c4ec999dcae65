"""What moves: an operator's immutable state in chunks, its buffered input, and where its windows stand.

An operator is deterministic: its outputs depend on the sequences of its inputs and on nothing else, not on
how the inputs arrive beside each other either. So its windows and variables need not be copied. Another host
makes them again from a savepoint and the input since then, and numbers the outputs in the same way.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from typing import NamedTuple, Protocol


class Item(NamedTuple):
    """``position``: 1, 2, 3 … in its stream."""

    position: int
    payload: bytes


@dataclass(frozen=True, slots=True)
class Savepoint:
    """A boundary between selections, from which an operator can be started again.

    ``inputs``: by stream, the last position that is not needed any more. ``outputs``: how many were made
    before. ``at``: the operator's own note about its windows.
    """

    inputs: tuple[tuple[str, int], ...]
    outputs: int = 0
    at: bytes = b""

    def position(self, stream: str) -> int:
        return dict(self.inputs).get(stream, 0)

    @property
    def age(self) -> tuple[int, int]:
        """Orders the savepoints of one operator: both numbers only grow."""
        return self.outputs, sum(position for _, position in self.inputs)


class Movable(Protocol):
    """An operator that can move."""

    def push(self, stream: str, item: Item) -> Sequence[bytes]:
        """Takes the next item of a stream. Returns the outputs that it causes, in order."""
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

    digest: str
    size: int
    chunk: int = 64 * 1024

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

    migration: int
    source: str
    target: str
    card: Card
    streams: tuple[str, ...]
    sinks: tuple[str, ...]
    deadline: float = float("inf")
    method: Method = Method.LIVE
    begin_at: float = 0.0
    bandwidth: float = float("inf")
    give_up_at: float = float("inf")

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
    ``batch``: items in a message. ``grain``: items after which a new savepoint is kept. ``note``: bytes of an
    operator's note. ``step``: seconds before it is due by which copying of buffers begins. ``patience``:
    seconds that the old host waits for a boundary between selections."""

    most_state: int = 4 * 1024**3
    items: int = 65_536
    bytes: int = 256 * 1024**2
    pending: int = 4096
    window: int = 16
    batch: int = 64
    grain: int = 32
    note: int = 64 * 1024
    step: float = 1.0
    patience: float = 5.0


DEFAULT_LIMITS = Limits()
