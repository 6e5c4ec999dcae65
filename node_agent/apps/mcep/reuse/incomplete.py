"""Estimates selections that still miss events, so that sharing is decided before they are complete.

Of the missing events some will lie in both selections. *Pessimistic* expects none, *optimistic* all;
*current* expects the share that the selections have now, and *pattern* the share that the operators' recent
events have (thesis, section 5.3.3: an urn with K shared events among M).
"""

import math
from collections.abc import Callable, Iterable

from node_agent.apps.mcep.geometry import Point, Region, contains
from node_agent.apps.mcep.model import Quality
from node_agent.apps.mcep.reuse.similarity import Candidate, Overlap

Share = Callable[[Candidate, Candidate, Overlap], float]
"""The expected share of missing events that will be in both: from the wanted selection, the used one, and
what they share now."""


def pessimistic(wanted: Candidate, used: Candidate, now: Overlap) -> float:
    return 0.0


def optimistic(wanted: Candidate, used: Candidate, now: Overlap) -> float:
    return 1.0


def current(wanted: Candidate, used: Candidate, now: Overlap) -> float:
    return now.shared / now.wanted if now.wanted else 0.0


def pattern(wanted: Candidate, used: Candidate, now: Overlap) -> float:
    """K / M: of the wanted operator's recent events, those that the other one got too."""
    return len(wanted.recent & used.recent) / len(wanted.recent) if wanted.recent else 0.0


PREDICTIONS: dict[str, Share] = {
    "pessimistic": pessimistic,
    "optimistic": optimistic,
    "current": current,
    "pattern": pattern,
}


def most_to_come(now: Overlap, wanted: int, used: int, later: bool = False) -> float:
    """How many events can still become shared, if so many miss on each side.

    A missing event can turn out to be one that the other selection has already, or one that misses there
    too. So it is the largest pairing in which no two events are paired that are known to differ. ``later``:
    missing events come after all that are known, so only those that miss on both sides can be the same.
    """
    if later:
        return float(min(wanted, used))
    only_wanted, only_used = now.wanted - now.shared, now.used - now.shared
    return min(only_wanted + wanted, only_used + used, float(wanted + used))


def completed(now: Overlap, wanted: int, used: int, share: float, later: bool = False) -> Overlap:
    """What two selections will share once their missing events are there."""
    shared = now.shared + share * most_to_come(now, wanted, used, later)
    return Overlap(shared, now.wanted + wanted, now.used + used)


def at_least(k: int, shared: int, recent: int, missing: int) -> float:
    """P(X >= k): that of ``missing`` events at least k are shared, drawn from ``recent`` with ``shared``.

    If more miss than are in the urn, the urn is taken as often as needed.
    """
    if k <= 0:
        return 1.0
    if recent <= 0 or k > missing:
        return 0.0
    times = -(-missing // recent)
    good, every = shared * times, recent * times
    ways = sum(
        math.comb(good, j) * math.comb(every - good, missing - j) for j in range(k, min(missing, good) + 1)
    )
    return ways / math.comb(every, missing)


def chance(
    now: Overlap, wanted: int, used: int, shared: int, recent: int, least: Quality, later: bool = False
) -> float:
    """How likely precision and recall will be above ``least``; ``shared`` of ``recent`` events are in both.

    Use it with a threshold of its own: ``chance(...) > 0.9``.
    """
    needed = max(
        least.precision * (now.used + used) - now.shared, least.recall * (now.wanted + wanted) - now.shared
    )
    draws = int(most_to_come(now, wanted, used, later))
    return at_least(math.floor(needed + 1e-9) + 1, shared, recent, draws)


def shared_recent(places: Iterable[Point], region: Region, other: Region) -> tuple[int, int]:
    """K and M for predicted interests: of recent events in one region, those that are in the other too."""
    inside = [each for each in places if contains(region, each)]
    return sum(contains(other, each) for each in inside), len(inside)
