"""Histograms of delays: exact below 64 µs, within 1.6 % above, small for any number of packets.

A histogram counts differences to a base, so that it stays exact where two clocks disagree by seconds: the
analysis moves the base, not the counts.
"""

from collections.abc import Iterable

US = 1_000
_EXACT = 64
_HALF = _EXACT // 2
_SHIFT = _HALF.bit_length()
MOST_BUCKETS = 2048
"""Buckets that differences of less than 2**62 ns can fall into, either side of the base."""


def bucket_of(difference_ns: int) -> int:
    """The number of the bucket that counts ``difference_ns``; negative for negative differences."""
    if difference_ns < 0:
        return -1 - bucket_of(-difference_ns - 1)
    units = difference_ns // US
    if units < _EXACT:
        return units
    octave = units.bit_length() - _SHIFT
    return octave * _HALF + (units >> octave)


def middle_ns(bucket: int) -> int:
    """The middle of a bucket, the inverse of ``bucket_of``."""
    if bucket < 0:
        return -1 - middle_ns(-1 - bucket)
    if bucket < _EXACT:
        return bucket * US + US // 2
    octave = bucket // _HALF - 1
    units = bucket - octave * _HALF
    return ((2 * units + 1) << octave) * US // 2


def quantile(counts: Iterable[tuple[int, int]], q: float) -> int | None:
    """The ``q``-quantile of (value, count) pairs; None if they count nothing."""
    ordered = sorted(counts)
    total = sum(count for _, count in ordered)
    if total <= 0:
        return None
    rank, seen = q * (total - 1), 0
    for value, count in ordered:
        seen += count
        if seen > rank:
            return value
    return ordered[-1][0]
