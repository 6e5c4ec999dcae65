"""What may move of a query, and what makes it move."""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple, Self

from node_agent.apps.mcep.model import McepError
from node_agent.migration.live.values import Limits, Method
from node_agent.migration.mobility import Seen
from node_agent.migration.plan import MigrationError
from node_agent.migration.situation import Network, network

MOST_STATE = 1024**3
"""Bytes of an operator's immutable state."""
MOST_STEPS = 200
GIVE_UP_S = 60.0
"""A migration that takes longer is given up, unless copying alone takes longer."""
EVEN_LATENCY_S, EVEN_BANDWIDTH = 0.001, 12_500_000.0
"""Between two brokers of which nothing is known; bytes a second."""
LIMITS = Limits(most_state=MOST_STATE, pending=1000, batch=32, window=4)


class Scheduled(NamedTuple):
    """A migration that the experiment asks for."""

    at: float
    operator: str
    to: str


@dataclass(frozen=True)
class Distances:
    """How far brokers are from each other."""

    network: Network

    @classmethod
    def even(cls, brokers: tuple[str, ...]) -> Self:
        return cls(
            network(brokers, lambda a, b: 0.0 if a == b else EVEN_LATENCY_S, lambda a, b: EVEN_BANDWIDTH)
        )

    @classmethod
    def known(
        cls,
        brokers: tuple[str, ...],
        latency: tuple[tuple[float, ...], ...],
        bandwidth: tuple[tuple[float, ...], ...],
    ) -> Self:
        """Raises McepError."""
        try:
            return cls(Network(brokers, latency, bandwidth))
        except MigrationError as error:
            raise McepError(str(error)) from error


@dataclass(frozen=True)
class Planning:
    """See ``PlanConfig``. ``route``: of navigation, places and when the mobile is there."""

    policy: str = "weighted_sum"
    mobiles: str = "linear"
    step: float = 4.0
    steps: int = 25
    refresh: float = 20.0
    reach: float | None = None
    paths: int = 4
    route: tuple[Seen, ...] = ()


@dataclass(frozen=True)
class Migration:
    """``state``: bytes of immutable state by operator; those that are not named have none. ``planning``:
    operators follow plans; ``greedy``: seconds after which each looks where it is cheapest now; without both
    operators move only as ``scheduled``. ``limit``: seconds that a path may take. ``room``: how many
    operators a broker takes."""

    method: Method = Method.LIVE
    state: Mapping[str, int] = field(default_factory=dict)
    scheduled: tuple[Scheduled, ...] = ()
    distances: Distances | None = None
    planning: Planning | None = None
    greedy: float | None = None
    limit: float | None = None
    room: Mapping[str, float] = field(default_factory=dict)

    @property
    def plans(self) -> bool:
        """Whether somebody measures streams and decides where operators go."""
        return self.planning is not None or self.greedy is not None

    def size(self, operator: str) -> int:
        return self.state.get(operator, 0)

    def bandwidth(self, one: str, other: str) -> float:
        """Bytes a second."""
        if self.distances is None:
            return EVEN_BANDWIDTH
        known = self.distances.network
        return known.bandwidth[known.number[one]][known.number[other]]

    def latency(self, one: str, other: str) -> float:
        """Seconds."""
        if self.distances is None:
            return 0.0 if one == other else EVEN_LATENCY_S
        return self.distances.network.between(one, other)


@lru_cache(maxsize=64)
def state_of(operator: str, size: int) -> bytes:
    """Stands for maps, models or pictures that an operator works with: bytes that nothing can make
    shorter."""
    return random.Random(f"state of {operator}").randbytes(size)
