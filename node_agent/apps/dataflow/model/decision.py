"""What a routing decision is made of: the rule, and the situation that the rule is applied to.

A situation is recorded whole with the decision, and nothing but it is decided on: so every decision can be
explained, and replayed under another rule.
"""

from collections.abc import Collection
from math import inf

from msgspec import Struct
from msgspec.structs import replace

MOST_CANDIDATES = 32
"""Of more replicas than this, only the cheapest are candidates: records and decisions are bounded."""


class Threshold(Struct, frozen=True):
    """The gain that a switch must exceed: in units of cost, or as a share of what the way in use costs."""

    gain: float = 0.0
    relative: bool = False

    def of(self, cost: float) -> float:
        return self.gain * cost if self.relative else self.gain

    def __str__(self) -> str:
        return f"{self.gain * 100:g}%" if self.relative else f"{self.gain:g}"


class Rule(Struct, frozen=True):
    """Which policy, and its settings.

    ``exponent``: how much less a dear way is used by policies that weigh by 1/cost^exponent. ``seed``: of
    choices that are drawn.
    """

    policy: str = "shortest_path"
    threshold: Threshold = Threshold()
    exponent: float = 2.0
    seed: int = 0


class Candidate(Struct, frozen=True, omit_defaults=True):
    """One downstream replica as the sender sees it; None: no path, or not known.

    ``link`` is the cost of reaching it, ``path`` that of the whole way through it to the sinks, ``aggregate``
    the same with the links of all inputs in place of the sender's own. ``queue`` counts the tuples that wait
    there. ``apart`` names the candidates whose network paths from here do not interfere with this one's.
    ``silent``: it does not answer, so there is no way through it whatever its link costs.
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

    ``current`` is the replica in use; where an operator has several inputs, the one that they have in common.
    ``queued`` tuples wait here. ``shared``: the operator has several inputs, which must all choose alike.
    ``whole``: its results need several tuples, so that a stream cannot be divided among its replicas.
    """

    candidates: tuple[Candidate, ...]
    current: str | None = None
    rule: Rule = Rule()
    queued: int = 0
    now_ns: int = 0
    shared: bool = False
    whole: bool = False

    def cost(self, candidate: Candidate) -> float:
        """What a choice compares: the aggregate where inputs share the choice, the sender's own else."""
        cost = candidate.aggregate if self.shared else candidate.path
        return inf if cost is None else cost

    def costs(self) -> dict[str, float]:
        """Of the replicas that can be used, in the plan's order."""
        costs = {candidate.to: self.cost(candidate) for candidate in self.candidates}
        return {to: cost for to, cost in costs.items() if cost < inf}

    def without(self, silent: Collection[str]) -> "Situation":
        """As if there were no way through these; unless there were none at all then: one may be back soon."""
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
