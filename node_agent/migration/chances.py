"""How likely each of several uncertain costs turns out the least one (Pmin of the thesis' k shortest paths).

A cost is only known to be in an interval around its estimate. How it is distributed there is a hint of the
operator: ``uniform``, or ``poisson`` for rates of events that come independently.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import exp, factorial

SLICES = 32
"""Of the numeric integration, between two ends of intervals."""
MEAN = 10
"""Of the Poisson numbers that stand for a cost: so many steps are between its estimate and each end."""
SURE = 1e-9
"""The least that a cost may be off, as a share: of costs that are sure and equal, each may be the least."""


@dataclass(frozen=True)
class Masses:
    """A cost that has certain values only. ``values`` grow; ``weights`` are 1 together."""

    values: tuple[float, ...]
    weights: tuple[float, ...]

    def above(self, y: float, or_equal: bool) -> float:
        first = bisect_left(self.values, y) if or_equal else bisect_right(self.values, y)
        return sum(self.weights[first:])


@dataclass(frozen=True)
class Even:
    """A cost that is anywhere between two others."""

    low: float
    high: float

    def above(self, y: float, or_equal: bool) -> float:
        return min(1.0, max(0.0, (self.high - y) / (self.high - self.low)))


Distribution = Callable[[float, float], Even | Masses]
"""Of an estimate and how far it may be off, at least a little."""


def uniform(cost: float, off: float) -> Even:
    return Even(cost - off, cost + off)


def poisson(cost: float, off: float) -> Masses:
    """As a Poisson number with mean 10, cut off at 20, whose 0 is the lower and whose 20 the upper end."""
    last = 2 * MEAN
    weights = [exp(-MEAN) * MEAN**n / factorial(n) for n in range(last + 1)]
    whole = sum(weights)
    values = tuple(cost + off * (n - MEAN) / MEAN for n in range(last + 1))
    return Masses(values, tuple(each / whole for each in weights))


def chances_to_be_least(
    costs: Sequence[float], spread: float, distribution: Distribution = uniform
) -> list[float]:
    """``spread``: how far each cost may be off, as a share. Of costs that come out equal the later one counts
    as the least; with ``uniform`` that does not happen."""
    given = [distribution(each, max(spread, SURE) * max(abs(each), SURE)) for each in costs]
    found = [_chance(given, j) for j in range(len(given))]
    whole = sum(found)
    return [each / whole for each in found]


def _chance(given: Sequence[Even | Masses], j: int) -> float:
    mine = given[j]
    if isinstance(mine, Masses):
        points = list(zip(mine.values, mine.weights, strict=True))
    else:
        points = _sliced(mine, given)
    return sum(weight * _none_below(given, j, y) for y, weight in points)


def _none_below(given: Sequence[Even | Masses], j: int, y: float) -> float:
    chance = 1.0
    for x, each in enumerate(given):
        if x != j and chance > 0:
            chance *= each.above(y, or_equal=x < j)
    return chance


def _sliced(mine: Even, given: Sequence[Even | Masses]) -> list[tuple[float, float]]:
    """Values and how likely they are: the middles of slices between all ends of intervals within it."""
    ends = {end for each in given if isinstance(each, Even) for end in (each.low, each.high)}
    bounds = sorted({mine.low, mine.high, *(end for end in ends if mine.low < end < mine.high)})
    found = []
    for low, high in pairwise(bounds):
        width = (high - low) / SLICES
        found += [(low + width * (n + 0.5), width / (mine.high - mine.low)) for n in range(SLICES)]
    return found
