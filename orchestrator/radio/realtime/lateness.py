"""How late the radio was: wall time minus model time for every single delivery, counted, never sampled.

A delivery may come up to ``EARLY_NS`` before its time. Bins are about 1 µs wide up to a millisecond, and
beyond it twice as wide each as the one before.
"""

from collections.abc import Sequence

from msgspec import Struct

EARLY_NS = 40_000
"""How far ahead of the wall clock events may run. Must stay below DIFS, or a frame could miss its turn."""

LIMIT_NS = 1_000_000
"""Later than this is late."""

MOST_LATE = 0.01
FINE_SHIFT = 10
FINE_BINS = ((LIMIT_NS + EARLY_NS) >> FINE_SHIFT) + 1
COARSE_SHIFT = 20
COARSE_BINS = 44
BINS = FINE_BINS + COARSE_BINS


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
    """The longest that nodes had moved without the channel knowing."""
    channel_fell_behind: bool
    scheduling: str
    """``fifo``, or ``normal`` where real-time priority was not allowed."""
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
        """May the run be believed, as far as the radio is concerned?"""
        return self.late_ratio <= MOST_LATE and not self.channel_fell_behind

    @property
    def problems(self) -> list[str]:
        found = []
        if self.late_ratio > MOST_LATE:
            found.append(f"the radio was late: {self.late_ratio:.1%} of deliveries by more than 1 ms")
        if self.channel_fell_behind:
            found.append(f"channel updates fell behind: by up to {self.channel_lag_max_ms:.0f} ms")
        return found


def upper_edge_us(index: int) -> float:
    """Of the bin ``(late + EARLY_NS) >> FINE_SHIFT`` or, if late,
    ``FINE_BINS + (late >> COARSE_SHIFT).bit_length()``."""
    if index < FINE_BINS:
        return min(max((((index + 1) << FINE_SHIFT) - EARLY_NS), 0), LIMIT_NS) / 1e3
    return (1 << (COARSE_SHIFT + index - FINE_BINS)) / 1e3


def quantile_us(bins: Sequence[int], share: float) -> float:
    """The upper edge of the bin that holds it."""
    wanted = share * sum(bins)
    passed = 0
    for index, count in enumerate(bins):
        passed += count
        if count and passed >= wanted:
            return upper_edge_us(index)
    return 0.0


def histogram(bins: Sequence[int]) -> tuple[Bin, ...]:
    """Bins that hold something; those of early deliveries are one."""
    merged: dict[float, int] = {}
    for index, count in enumerate(bins):
        if count:
            edge = upper_edge_us(index)
            merged[edge] = merged.get(edge, 0) + count
    return tuple(Bin(edge, count) for edge, count in merged.items())
