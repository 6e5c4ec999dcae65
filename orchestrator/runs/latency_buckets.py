"""Counts of latencies in buckets, each 4 % wider than the one before: small, and they can be added up.

A list of ``[bucket, count]``. Percentiles of several lists are those of all their latencies, within 2 %; a
list of more than ``MOST_BUCKETS`` is made coarser, by half each time.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence

LEAST_S = 1e-6
MOST_BUCKETS = 64
_STEP = math.log(1.04)
_LAST = 700

Buckets = list[list[int]]


def counted(latencies: Iterable[float]) -> Buckets:
    return _bounded(Counter(map(_bucket, latencies)))


def added(several: Iterable[Sequence[Sequence[int]]]) -> Counter[int]:
    found: Counter[int] = Counter()
    for buckets in several:
        for bucket, count in buckets:
            found[bucket] += count
    return found


def percentile(counts: Counter[int], share: float) -> float | None:
    """Returns the latency that ``share`` of 100 do not exceed; None if there is none."""
    rank, seen = round(share / 100 * (counts.total() - 1)), 0
    for bucket in sorted(counts):
        seen += counts[bucket]
        if seen > rank:
            return LEAST_S * math.exp((bucket + 0.5) * _STEP)
    return None


def _bucket(latency: float) -> int:
    """What is less than ``LEAST_S``, or negative by the error of clocks, is in the first one."""
    if not latency > LEAST_S:
        return 0
    return min(_LAST, int(math.log(latency / LEAST_S) / _STEP))


def _bounded(counts: Counter[int]) -> Buckets:
    width = 1
    while len(counts) > MOST_BUCKETS:
        width *= 2
        coarse: Counter[int] = Counter()
        for bucket, count in counts.items():
            coarse[bucket // width * width + width // 2] += count
        counts = coarse
    return [[bucket, counts[bucket]] for bucket in sorted(counts)]
