"""Computes how far a node's clock is from ours, from questions and answers over any connection; pure.

A node reads its clock at some time between our question and its answer. However that time is split between
the two directions, the middle is off by at most half of it.
"""

from collections.abc import Iterable
from typing import Annotated

from msgspec import Meta, Struct

GRANULARITY_NS = 1_000
"""The resolution of clocks is no coarser than this."""
LATEST_NS = 2**62
"""The largest time that any clock shows: in the year 2116."""
MOST_DRIFT = 500e-6
"""The most that one clock drifts against another while nobody sets either: kernels slew by no more."""


class Exchange(Struct, frozen=True):
    """One question: when we sent it and got the answer, and what the node's clock showed in between."""

    sent_ns: int
    node_ns: int
    received_ns: int

    @property
    def round_trip_ns(self) -> int:
        return self.received_ns - self.sent_ns


class Offset(Struct, frozen=True):
    """At ``at_ns`` of our clock the node's showed ``at_ns + offset_ns``, plus or minus the uncertainty."""

    at_ns: Annotated[int, Meta(ge=0, le=LATEST_NS)]
    offset_ns: Annotated[int, Meta(ge=-LATEST_NS, le=LATEST_NS)]
    uncertainty_ns: Annotated[int, Meta(ge=0, le=LATEST_NS)]

    @property
    def node_ns(self) -> int:
        return self.at_ns + self.offset_ns


def estimate(exchanges: Iterable[Exchange]) -> Offset:
    """Uses the exchange with the shortest round trip; raises ValueError if none can be used."""
    # Our own clock may have been set back between question and answer, and a node may answer anything.
    usable = [each for each in exchanges if each.round_trip_ns >= 0 and 0 <= each.node_ns <= LATEST_NS]
    if not usable:
        raise ValueError("no exchange to estimate an offset from")
    best = min(usable, key=lambda exchange: exchange.round_trip_ns)
    middle_ns = (best.sent_ns + best.received_ns) // 2
    half_ns = (best.round_trip_ns + 1) // 2
    return Offset(middle_ns, best.node_ns - middle_ns, half_ns + GRANULARITY_NS)


def between(before: Offset, after: Offset, at_ns: int) -> Offset:
    """Interpolates. The uncertainty grows with the distance from both, by what a clock can drift in that
    time, but by no more than it was seen to move."""
    span_ns = after.at_ns - before.at_ns
    moved_ns = after.offset_ns - before.offset_ns
    since_ns, until_ns = at_ns - before.at_ns, after.at_ns - at_ns
    most_drift = MOST_DRIFT + abs(moved_ns) / span_ns
    wander_ns = min(most_drift * min(since_ns, until_ns), abs(moved_ns))
    offset_ns = before.offset_ns + round(moved_ns * since_ns / span_ns)
    measured_ns = max(before.uncertainty_ns, after.uncertainty_ns)
    return Offset(at_ns, offset_ns, measured_ns + round(wander_ns))


def stepped(before: Offset, after: Offset) -> bool:
    """Says whether the clock moved by more than it can have drifted: then somebody set it."""
    drifted_ns = MOST_DRIFT * (after.at_ns - before.at_ns)
    return abs(after.offset_ns - before.offset_ns) > before.uncertainty_ns + after.uncertainty_ns + drifted_ns
