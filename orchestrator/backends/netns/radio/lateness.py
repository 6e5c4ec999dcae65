"""Measures how late the radio was: wall time minus model time, for every single delivery, not for samples.

A delivery may come up to ``EARLY_NS`` before its time. Bins are about 1 µs wide up to a millisecond; beyond
it each is twice as wide as the one before.
"""

import math
from array import array
from collections.abc import Sequence

import numpy as np
from msgspec import Struct

EARLY_NS = 40_000
"""How far ahead of the wall clock events may run. Must stay below DIFS, or a frame could miss its turn."""

LIMIT_NS = 1_000_000
"""A delivery later than this counts as late."""

MOST_LATE = 0.01
FINE_SHIFT = 10
FINE_BINS = ((LIMIT_NS + EARLY_NS) >> FINE_SHIFT) + 1
COARSE_SHIFT = 20
COARSE_BINS = 44
BINS = FINE_BINS + COARSE_BINS

# The first lateness in nanoseconds beyond each bin but the last.
_BEYOND = np.array(
    [((index + 1) << FINE_SHIFT) - EARLY_NS for index in range(FINE_BINS - 1)]
    + [LIMIT_NS + 1]
    + [1 << (COARSE_SHIFT + index) for index in range(COARSE_BINS - 1)]
)


class Bin(Struct, frozen=True):
    """``count`` deliveries that were less than ``below_us`` late, and not in an earlier bin."""

    below_us: float
    count: int


class LatenessReport(Struct, frozen=True):
    deliveries: int
    late: int
    """Deliveries more than 1 ms after their time."""
    late_ratio: float
    p50_us: float
    p99_us: float
    max_us: float
    channel_updates: int
    channel_lag_max_ms: float
    """The longest time for which nodes had moved without an update of the channel."""
    channel_fell_behind: bool
    scheduling: str
    """``fifo``, or ``normal`` if real-time priority was not allowed."""
    wall_s: float
    loop_cpu_s: float
    helper_cpu_s: float
    frames: dict[str, int]
    """What became of frames, over all nodes."""
    queue_drops: dict[str, int]
    """Per node: frames that found the transmit queue full."""
    histogram: tuple[Bin, ...] = ()

    @property
    def honest(self) -> bool:
        """Can the run be trusted, as far as the radio is concerned?"""
        return self.late_ratio <= MOST_LATE and not self.channel_fell_behind

    @property
    def problems(self) -> list[str]:
        found = []
        if self.late_ratio > MOST_LATE:
            found.append(f"the radio was late: {self.late_ratio:.1%} of deliveries by more than 1 ms")
        if self.channel_fell_behind:
            found.append(f"channel updates fell behind: by up to {self.channel_lag_max_ms:.0f} ms")
        return found


class Tally:
    """Counts deliveries by lateness. Noting one is an append; many at a time are sorted
    into bins. ``bins``: the array of 64-bit counters."""

    def __init__(self, origin_ns: int, bins: "memoryview | array[int]") -> None:
        self._origin = origin_ns
        self._bins = np.frombuffer(bins, np.int64)
        self._noted = array("q")
        self.latest_ns = -EARLY_NS
        self.note = self._noted.append
        """Takes a delivery's time on the clock minus its model time."""

    def settle(self) -> None:
        """Counts the noted deliveries."""
        if not self._noted:
            return
        late = np.array(self._noted) - self._origin
        del self._noted[:]
        self._bins += np.bincount(_BEYOND.searchsorted(late, "right"), minlength=BINS)
        self.latest_ns = max(self.latest_ns, int(late.max()))


def upper_edge_us(index: int) -> float:
    """Returns the upper edge of a bin; early is on time, and the last bin has no end."""
    return max(int(_BEYOND[index]), 0) / 1e3 if index < BINS - 1 else math.inf


def quantile_us(bins: Sequence[int], share: float) -> float:
    """Returns the upper edge of the bin with the quantile."""
    wanted = share * sum(bins)
    passed = 0
    for index, count in enumerate(bins):
        passed += count
        if count and passed >= wanted:
            return upper_edge_us(index)
    return 0.0


def histogram(bins: Sequence[int]) -> tuple[Bin, ...]:
    """Returns the bins that are not empty; those of early deliveries are merged."""
    merged: dict[float, int] = {}
    for index, count in enumerate(bins):
        if count:
            edge = upper_edge_us(index)
            merged[edge] = merged.get(edge, 0) + count
    return tuple(Bin(edge, count) for edge, count in merged.items())
