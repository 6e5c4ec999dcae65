"""How much delivery may promise, keep and wait: reliability levels, overflow policies and their bounds."""

from enum import StrEnum

from msgspec import Struct

EMPTY_PER_ITEM = 16
"""How many positions without payload, holes or spilled, there may be for every item that there may be."""


MOST_RANGES = 262_144
"""Of a set of positions that others tell us of: honest ones have as many as items are on their way."""


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
    """Items and bytes of each stream per downstream operator; times in seconds.

    ``spill_bytes``: how long a node's spill file may become.

    ``in_flight``: items sent to one replica that it has not taken yet. ``retry``: pause after a failure.
    ``unacknowledged``: age at which an item that the route has left behind is sent again, and after which a
    replica that makes no progress asks upstream what has been done elsewhere; it asks again after twice the
    time, up to ``patience``. ``sources_wait`` for room; else their oldest unsent items are dropped.
    """

    items: int = 4096
    bytes: int = 64 * 1024 * 1024
    spill_bytes: int = 1024 * 1024 * 1024
    overflow: Overflow = Overflow.BLOCK
    in_flight: int = 256
    retry: float = 0.2
    unacknowledged: float = 2.0
    patience: float = 16.0
    sources_wait: bool = True
