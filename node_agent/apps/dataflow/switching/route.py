"""Where a replica's output goes: the value that policies make and dispatchers follow."""

from collections.abc import Sequence
from typing import NamedTuple

from msgspec import Struct

_MASK = 2**64 - 1


class Hop(Struct, frozen=True):
    """The chosen replica, and the cost of the path through it to the sinks (None: no path at present).

    A policy may divide a stream among several replicas: then ``shares`` has the share of each, and ``to`` is
    the one with the largest. They take turns; with a ``seed`` they are drawn.
    """

    to: str
    cost: float | None
    shares: tuple[tuple[str, float], ...] = ()
    seed: int | None = None

    def replicas(self) -> tuple[str, ...]:
        return tuple(replica for replica, _ in self.shares) or (self.to,)

    def pick(self, tau: int) -> str:
        """Returns where tuple ``tau`` goes: always the same replica for the same hop."""
        if not self.shares:
            return self.to
        if self.seed is None:
            return self.shares[tau % len(self.shares)][0]
        left = _uniform(self.seed, tau)
        for replica, share in self.shares:
            left -= share
            if left < 0:
                return replica
        return self.shares[-1][0]


class Choice(NamedTuple):
    """What a policy returns. ``needed``: the gain in cost that a switch would have had to exceed.

    ``memory``: what the policy gets back at its next decision.
    """

    hop: Hop | None
    needed: float | None = None
    memory: Struct | None = None


class Route(Struct, frozen=True):
    """By downstream operator, the hop in use, None if there is no path; and the memory of policies."""

    hops: dict[str, Hop | None] = {}
    memory: dict[str, Struct] = {}

    def to(self, downstream: str) -> str | None:
        hop = self.hops.get(downstream)
        return hop.to if hop else None


def spread(weights: Sequence[tuple[str, float]], costs: dict[str, float], seed: int | None) -> Hop | None:
    """Returns a hop that gives each replica its share of the tuples, by weight; None if all weights are 0."""
    total = sum(weight for _, weight in weights)
    if not total > 0:
        return None
    shares = tuple((replica, weight / total) for replica, weight in weights if weight > 0)
    largest = max(shares, key=lambda share: share[1])[0]
    if len(shares) == 1:
        return Hop(largest, costs[largest])
    return Hop(largest, costs[largest], shares, seed)


def _uniform(seed: int, number: int) -> float:
    """Returns a number in [0, 1), by SplitMix64: a draw without state."""
    z = (seed * 0xD1342543DE82EF95 + number * 0x9E3779B97F4A7C15 + 0x9E3779B97F4A7C15) & _MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return float((z ^ (z >> 31)) >> 11) / 2**53
