"""How long a supervisor goes on without a message from its owner."""

import math
import time

from msgspec import Struct


def is_term(seconds: float) -> bool:
    return 0 < seconds < math.inf


class Lease(Struct, frozen=True):
    """``ends``: the time, in seconds of a clock that only goes forward."""

    ends: float

    def renewed(self, now: float, seconds: float) -> "Lease":
        return Lease(now + seconds)

    def left(self, now: float) -> float:
        return max(0.0, self.ends - now)

    def is_over(self, now: float) -> bool:
        return now >= self.ends


def now() -> float:
    """Includes the time that a phone sleeps: its owner did not reach it then."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()
