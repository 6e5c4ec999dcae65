"""Memory shared by the real-time loop and its helper: counters one way, updates of the medium the other.

The loop never waits: each cell has one writer, and a reader that meets an update reads again. Updates are
bytes; they go through a ring of slots, so that the helper can work ahead.
"""

import mmap
import time
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from orchestrator.backends.netns.radio.lateness import BINS

SLOTS = 4

(
    PUBLISHED,
    APPLIED,
    STOP,
    READY,
    LAG_MAX_NS,
    LATENESS_MAX_NS,
    CPU_NS,
    NOW_NS,
    FIFO,
    ACKNOWLEDGED,
    BROADCASTS,
    TIMEOUTS,
    GIVEN_UP,
    UNKNOWN_DESTINATION,
    REFUSED,
    VERSION,
) = range(16)
_SCALARS = 16
_LINKS = ("attempts", "received", "acknowledged", "timeouts", "given_up")
_LOOKS = 1000
_LOOK_AGAIN_S = 0.0005


@dataclass(frozen=True)
class Counters:
    """What the loop has counted; ``air_ns`` of each node, the last five of each link, row by row.
    ``acknowledged``, ``timeouts`` and ``given_up`` are of unicast frames only, and are counted for station
    tables.
    """

    scalars: list[int]
    lateness: list[int]
    air_ns: list[int]
    attempts: list[int]
    received: list[int]
    acknowledged: list[int]
    timeouts: list[int]
    given_up: list[int]


class Shared:
    """Created before the fork. ``cells`` are 64-bit numbers; the names above index the first of them."""

    def __init__(self, node_count: int) -> None:
        self.node_count = node_count
        square = node_count * node_count
        self._lengths = _SCALARS
        self._bins = self._lengths + SLOTS
        self._air_ns = self._bins + BINS
        self._attempts = self._air_ns + node_count
        self._square = square
        cell_count = self._attempts + len(_LINKS) * square
        # Four matrices of floats at 9 bytes, lists of neighbours at 5, bit sets, and for each wire whom it
        # leads to at 5, its rate at 9 and its latency at 11, in a tuple: an upper limit.
        self._slot_size = square * (4 * 9 + 5 + 4 + 32) + node_count * 128 + 4096
        self._memory = mmap.mmap(-1, cell_count * 8 + SLOTS * self._slot_size)
        everything = memoryview(self._memory)
        self.cells = everything[: cell_count * 8].cast("q")
        self.lateness = self.cells[self._bins : self._air_ns]
        self._slots = everything[cell_count * 8 :]

    # The helper's side

    def has_room(self) -> bool:
        return self.cells[PUBLISHED] - self.cells[APPLIED] < SLOTS

    def publish(self, data: bytes) -> None:
        """Publishes the update for the next tick; no bytes: nothing changes."""
        number = self.cells[PUBLISHED] + 1
        start = number % SLOTS * self._slot_size
        assert len(data) <= self._slot_size
        self._slots[start : start + len(data)] = data
        self.cells[self._lengths + number % SLOTS] = len(data)
        self.cells[PUBLISHED] = number

    def counters(self) -> "Counters":
        """Returns a consistent copy: values of two updates must not be mixed."""
        for _ in range(_LOOKS):
            before = self.cells[VERSION]
            copy = self.cells.tolist()
            # Odd: an update is under way, or the loop died in one.
            if before == self.cells[VERSION] and not before & 1:
                break
            time.sleep(_LOOK_AGAIN_S)
        return Counters(
            scalars=copy[:_SCALARS],
            lateness=copy[self._bins : self._air_ns],
            air_ns=copy[self._air_ns : self._attempts],
            **{
                name: copy[start : start + self._square]
                for name, start in zip(_LINKS, range(self._attempts, len(copy), self._square), strict=True)
            },
        )

    # The loop's side

    def take(self) -> bytes:
        """Returns the oldest update not yet applied; no bytes: nothing changes. There must be one."""
        number = self.cells[APPLIED] + 1
        start = number % SLOTS * self._slot_size
        length = self.cells[self._lengths + number % SLOTS]
        data = bytes(self._slots[start : start + length])
        self.cells[APPLIED] = number
        return data

    @contextmanager
    def update(self) -> Iterator[None]:
        """Encloses changes that belong together."""
        self.cells[VERSION] += 1
        yield
        self.cells[VERSION] += 1

    def put_airtimes(self, air_ns: Sequence[int]) -> None:
        """Stores how long each node has sent."""
        self.cells[self._air_ns : self._attempts] = memoryview(array("q", air_ns))

    def put_links(self, node: int, *rows: Sequence[int]) -> None:
        """Stores the counts of the node's links: the first of those in ``Counters``, or all."""
        count = self.node_count
        first = self._attempts + node * count
        for row in rows:
            self.cells[first : first + count] = memoryview(array("q", row))
            first += self._square
