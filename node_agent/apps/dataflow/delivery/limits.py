"""Reliability levels, overflow policies, and the limits of what delivery keeps and how long it waits."""

from enum import StrEnum

from msgspec import Struct

EMPTY_PER_ITEM = 16
"""How many positions without payload (holes, spilled) may be kept for every item that may be kept."""


MOST_RANGES = 262_144
"""The limit of ranges in a set of positions that others report: honest ones have no more than items on the
way.
"""


MOST_OPEN = 24
"""How many tuples of a source that saturates may be on their way to the sinks. Operators keep what they
cannot send: without a limit, tuples would grow old there.
"""


class Reliability(StrEnum):
    """What delivery promises. Queries of best effort run without it (``dataflow.best_effort``)."""

    AT_LEAST_ONCE = "at_least_once"
    EXACTLY_ONCE = "exactly_once"


class Overflow(StrEnum):
    """What happens to a new item when a retention is full."""

    BLOCK = "block"
    SPILL = "spill"
    DROP_OLDEST = "drop_oldest"


class DeliveryLimits(Struct, frozen=True):
    """Items and bytes are for each stream and downstream operator; times are in seconds.

    ``spill_bytes``: the longest that a node's spill file may become.

    ``in_flight``: items sent to one replica that it has not taken yet. ``retry``: pause after a failure.
    ``unacknowledged``: the age at which an item is sent again if its replica is no longer chosen, and the
    time after which a replica without progress asks upstream what was done elsewhere. It asks again after
    twice the time, up to ``longest_pause``. ``sources_wait`` for room; otherwise their oldest unsent items
    are dropped.
    """

    items: int = 4096
    bytes: int = 64 * 1024 * 1024
    spill_bytes: int = 1024 * 1024 * 1024
    overflow: Overflow = Overflow.BLOCK
    in_flight: int = 256
    retry: float = 0.2
    unacknowledged: float = 2.0
    longest_pause: float = 16.0
    sources_wait: bool = True
