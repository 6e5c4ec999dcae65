"""What may move of a query, and what makes it move."""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from node_agent.migration.live.values import Limits, Method

MOST_STATE = 1024**3
"""Bytes of an operator's immutable state."""
GIVE_UP_S = 60.0
"""A migration that takes longer is given up, unless copying alone takes longer."""
LIMITS = Limits(most_state=MOST_STATE, pending=1000, batch=32, window=4)


class Scheduled(NamedTuple):
    """A migration that the experiment asks for."""

    at: float
    operator: str
    to: str


@dataclass(frozen=True)
class Migration:
    """``state``: bytes of immutable state by operator; those that are not named have none. ``bandwidth``:
    bytes a second between two brokers, as far as known."""

    method: Method = Method.LIVE
    state: Mapping[str, int] = field(default_factory=dict)
    scheduled: tuple[Scheduled, ...] = ()
    bandwidth: float = 12_500_000.0

    def size(self, operator: str) -> int:
        return self.state.get(operator, 0)


@lru_cache(maxsize=64)
def state_of(operator: str, size: int) -> bytes:
    """Stands for maps, models or pictures that an operator works with: bytes that nothing can make
    shorter."""
    return random.Random(f"state of {operator}").randbytes(size)
