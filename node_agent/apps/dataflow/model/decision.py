"""The input of a switching decision: the rule, and the situation that it is applied to.

A decision depends on nothing else, and is recorded with the whole situation. So every decision can be
explained, and replayed under another rule.
"""

from collections.abc import Collection
from math import inf

from msgspec import Struct
from msgspec.structs import replace

MOST_CANDIDATES = 32
"""If there are more replicas, only the cheapest are candidates: records and decisions are bounded."""


class Threshold(Struct, frozen=True):
    """The gain that a switch must exceed: in units of cost, or as a share of the cost of the path in use."""

    gain: float = 0.0
    relative: bool = False

    def of(self, cost: float) -> float:
        return self.gain * cost if self.relative else self.gain

    def __str__(self) -> str:
        return f"{self.gain * 100:g}%" if self.relative else f"{self.gain:g}"


class Rule(Struct, frozen=True):
    """A policy and its settings.

    ``exponent``: policies that weigh by 1/cost^exponent use expensive paths less, the larger it is. ``seed``:
    for choices that are drawn.
    """

    policy: str = "shortest_path"
    threshold: Threshold = Threshold()
    exponent: float = 2.0
    seed: int = 0


class Candidate(Struct, frozen=True, omit_defaults=True):
    """One downstream replica as the sender sees it. None: no path, or not known.

    ``link``: cost of reaching it. ``path``: cost of the whole path through it to the sinks. ``aggregate``:
    the same, with the links of all inputs instead of the sender's own. ``queue``: tuples that wait there.
    ``apart``: the candidates whose network paths from here do not interfere with this one's. ``silent``: it
    does not answer, so no path leads through it whatever its link costs.
    """

    to: str
    link: float | None = None
    path: float | None = None
    aggregate: float | None = None
    queue: int | None = None
    apart: tuple[str, ...] = ()
    silent: bool = False


class Situation(Struct, frozen=True):
    """All that a policy sees when it chooses among the replicas of one downstream operator.

    ``current``: the replica in use; for an operator with several inputs, the one that they have in common.
    ``queued`` tuples wait here. ``shared``: the operator has several inputs, which must choose the same
    replica. ``whole``: its results need several tuples, so a stream cannot be divided among its replicas.
    """

    candidates: tuple[Candidate, ...]
    current: str | None = None
    rule: Rule = Rule()
    queued: int = 0
    now_ns: int = 0
    shared: bool = False
    whole: bool = False

    def cost(self, candidate: Candidate) -> float:
        """Returns the cost that a choice compares: the aggregate if inputs share the choice, else the
        sender's own.
        """
        cost = candidate.aggregate if self.shared else candidate.path
        return inf if cost is None else cost

    def costs(self) -> dict[str, float]:
        """Returns the costs of the usable replicas, in the plan's order."""
        costs = {candidate.to: self.cost(candidate) for candidate in self.candidates}
        return {to: cost for to, cost in costs.items() if cost < inf}

    def without(self, silent: Collection[str]) -> "Situation":
        """Returns the situation without paths through ``silent``, unless none would be left: one may be back
        soon.
        """
        if not any(c.to in silent for c in self.candidates):
            return self
        candidates = tuple(
            replace(c, path=None, aggregate=None, silent=True) if c.to in silent else c
            for c in self.candidates
        )
        found = replace(self, candidates=candidates)
        return found if found.costs() else self

    def candidate(self, to: str) -> Candidate | None:
        return next((candidate for candidate in self.candidates if candidate.to == to), None)
