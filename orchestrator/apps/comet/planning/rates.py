"""How often events match: the numbers behind every estimate of cost.

Sources are Poisson. For a set of events of which a node knows all instances there are two figures:

- ``kept(e)``: the probability that an instance of e is part of a match of the whole set. Only such instances
  are sent on.
- ``matches``: how many matches per second have no other match inside their span. For each of them a node asks
  once when it pulls another input, because the interval asked for contains those of all wider matches.

``and`` of rates λ within w. Write g = 1 - exp(-λw), the probability that a window of length w holds an
instance. Seen from an instance of e, the windows that contain it end x in [0, w] later; one is good if it
holds all other events. Products and sums below run over these. Windows are good with probability G = Π g;
with x growing they become good at the rate ν, and the rate at which this happens at x is, in each case,

    ν                 = Σ_j λ_j exp(-λ_j w) Π_{l≠j} g_l
    c(x)              = Σ_j λ_j exp(-λ_j w) (1 - exp(-λ_j x)) Π_{l≠j} h_l(x)          if x = 0 is good, too
    ν m(x)            = Σ_{i≠j} λ_i exp(-λ_i w) λ_j exp(-λ_j w) (1 - exp(-λ_j x)) Π_{l≠i,j} h_l(x)
                                                          if a window becomes good at x = 0, too
    h(x)              = 1 - 2 exp(-λw) + exp(-λ(w+x)): both windows hold an instance

The first good window then ends at x with the density f, which follows from subtracting those that are not the
first:

    f(x) = ν - c(x) - ∫_0^x f(y) m(x-y) dy,     kept(e) = G + ∫_0^w f(x) dx

This is exact for two events, where it is 1 - exp(-2wλ), and for rare and for frequent events; in between it
takes what happens after the first good window to depend on that window alone. The narrowest matches begin
with some i and end τ <= w later with some j, hold all others in between, and no second i or j:

    matches = ∫_0^w Σ_{i≠j} λ_i λ_j exp(-(λ_i + λ_j)τ) Π_{l≠i,j} (1 - exp(-λ_l τ)) dτ

``seq`` within w. The nearest chain before and after an instance has gaps that are exponential, so with one
exponential variable for each other event

    kept(e) = P(Σ_j Exp(λ_j) <= w)                                                    (exact)
    matches = H (1 - exp(-Π λ w^(m-1) / ((m-1)! H))),  H = 1 / Σ 1/λ                  (exact for m = 2)

An operator inside another one counts as an event that occurs at the rate of its matches. Events that last
shorten the window: by the mean of the lengths in ``and``, by their sum in ``seq``.
"""

import cmath
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from node_agent.apps.comet.conjuncts import Shape
from node_agent.apps.comet.events import EventSource
from node_agent.apps.comet.patterns import And, Event, Seq

Array = NDArray[np.float64]

_STEPS = 16
"""Of a window, for integrals over it."""
_RARE = 1e-3
"""If windows are good this rarely, G + νw is exact enough: the first good one is the only one."""
_ROOTS, _WHOLE_WEIGHTS = np.polynomial.legendre.leggauss(24)
_PLACES, _WEIGHTS = (1 + _ROOTS) / 2, _WHOLE_WEIGHTS / 2
"""Of Gauss and Legendre's rule on [0, 1]."""


@dataclass(frozen=True)
class Occurrence:
    """Of a set of events: matches per second, and what share of each event's instances takes part in one."""

    matches: float
    kept: Mapping[str, float]
    length: float = 0.0


def restricted(shape: Shape, events: frozenset[str]) -> Shape | None:
    """What a node that knows only ``events`` can check of a shape."""
    if isinstance(shape, Event):
        return shape if shape.name in events else None
    parts = tuple(
        kept
        for part in shape.parts
        if isinstance(part, Event | And | Seq) and (kept := restricted(part, events)) is not None
    )
    if len(parts) <= 1:
        return parts[0] if parts else None
    return type(shape)(parts, shape.window)


def occurrence(shape: Shape, sources: Mapping[str, EventSource]) -> Occurrence:
    if isinstance(shape, Event):
        source = sources[shape.name]
        return Occurrence(source.rate, {shape.name: 1.0}, source.length)
    parts = [occurrence(part, sources) for part in shape.parts if isinstance(part, Event | And | Seq)]
    rates = [part.matches for part in parts]
    lengths = [part.length for part in parts]
    if min(rates) <= 0:
        return Occurrence(0.0, {name: 0.0 for part in parts for name in part.kept})
    if isinstance(shape, And):
        length = max(lengths)
        window = max(shape.window - sum(lengths) / len(lengths), 0.0)
        shares, matches = together_shares(rates, window), together_matches(rates, window)
    else:
        length = sum(lengths)
        window = max(shape.window - length, 0.0)
        shares, matches = ordered_shares(rates, window), ordered_matches(rates, window)
    kept = {
        name: within * share
        for part, share in zip(parts, shares, strict=True)
        for name, within in part.kept.items()
    }
    return Occurrence(matches, kept, length)


def together_shares(rates: Sequence[float], window: float) -> list[float]:
    """Returns ``kept`` of each event of an ``and``."""
    if len(rates) == 1:
        return [1.0]
    rate = np.asarray(rates)[:, None]
    missing = np.exp(-rate * window)
    held = -np.expm1(-rate * window)
    if window <= 0 or held.min() <= 0:
        return [0.0] * len(rates)
    good, becoming = _without_each(held, [rate * missing / held])
    rare = good + window * good * becoming
    if rare.max() < _RARE:
        return [float(share) for share in rare[:, 0]]
    later = np.linspace(0.0, window, _STEPS + 1)[None, :]
    # h(x), written so that nothing cancels out
    both = held**2 + np.exp(-rate * (window + later)) * -np.expm1(-rate * (window - later))
    both = np.maximum(both, 1e-300)
    arrives = rate * missing / both
    again = arrives * -np.expm1(-rate * later)
    everyone, ends, starts, pairs = _without_each(both, [again, arrives, again * arrives])
    after_good = everyone * ends
    after_becoming = everyone * (ends * starts - pairs) / np.maximum(good * becoming, 1e-300)
    step = window / _STEPS
    source = np.maximum(good * becoming - after_good, 0.0)
    density = np.zeros_like(source)
    density[:, 0] = source[:, 0]
    for x in range(1, _STEPS + 1):
        weights = after_becoming[:, x:0:-1].copy()
        weights[:, 0] /= 2
        earlier = (density[:, :x] * weights).sum(axis=1) * step
        density[:, x] = np.maximum(source[:, x] - earlier, 0.0)
    first = (density.sum(axis=1) - (density[:, 0] + density[:, -1]) / 2) * step
    shares: list[float] = np.minimum(good[:, 0] + first, 1.0).tolist()
    return shares


def _without_each(factors: Array, terms: Sequence[Array]) -> list[Array]:
    """Returns the product of the factors, and the sums of the terms, over all rows but the own one."""
    logs = np.log(factors)
    product = np.exp(logs.sum(axis=0) - logs)
    return [product, *(np.maximum(term.sum(axis=0) - term, 0.0) for term in terms)]


def together_matches(rates: Sequence[float], window: float) -> float:
    if len(rates) == 1:
        return rates[0]
    if window <= 0:
        return 0.0
    spans = window * _PLACES
    rate = np.asarray(rates)[:, None]
    held = np.maximum(-np.expm1(-rate * spans), 1e-300)
    ends = rate * np.exp(-rate * spans) / held
    pairs = np.maximum(ends.sum(axis=0) ** 2 - (ends * ends).sum(axis=0), 0.0)
    return float((_WEIGHTS * held.prod(axis=0) * pairs).sum() * window)


def ordered_shares(rates: Sequence[float], window: float) -> list[float]:
    return [sum_within([*rates[:place], *rates[place + 1 :]], window) for place in range(len(rates))]


def ordered_matches(rates: Sequence[float], window: float) -> float:
    slowest = 1 / sum(1 / rate for rate in rates)
    chains = math.prod(rates) * window ** (len(rates) - 1) / math.factorial(len(rates) - 1)
    return slowest * -math.expm1(-chains / slowest)


def sum_within(rates: Sequence[float], window: float) -> float:
    """Returns the probability that a sum of exponential variables is at most ``window``.

    By inversion of its Laplace transform (fixed Talbot method, Abate and Valko 2004). Where the result is so
    small that the method's error shows, the first term of its series is used.
    """
    if not rates:
        return 1.0
    if window <= 0:
        return 0.0
    scaled = [rate * window for rate in rates]
    first = math.exp(sum(map(math.log, scaled)) - math.lgamma(len(scaled) + 1))
    if first < 1e-7:
        return first * math.exp(-sum(scaled) / (len(scaled) + 1))

    def transform(s: complex) -> complex:
        result = 1 / s
        for rate in scaled:
            result *= rate / (s + rate)
        return result

    terms = 18
    radius = 2 * terms / 5
    total = 0.5 * math.exp(radius) * transform(complex(radius)).real
    for number in range(1, terms):
        angle = number * math.pi / terms
        cotangent = 1 / math.tan(angle)
        place = radius * angle * complex(cotangent, 1)
        slope = complex(1, angle + (angle * cotangent - 1) * cotangent)
        total += (cmath.exp(place) * transform(place) * slope).real
    return min(max(radius / terms * total, 0.0), 1.0)
