"""Estimates that stay as they are while measurements only waver, so that plans do not change all the time.

``steady`` keeps an estimate until a measurement is beyond a bound. ``safe_share`` says which bound is safe:
while no weight of a time graph is off by more, the path that was chosen is still cheaper than the other one.
"""

from collections.abc import Mapping
from math import inf
from typing import TypeVar

Key = TypeVar("Key")


def steady(estimates: Mapping[Key, float], measured: Mapping[Key, float], bound: float) -> dict[Key, float]:
    """``bound``: by which share of an estimate a measurement may be off. Estimates that are not measured are
    dropped, new ones are taken as they are."""
    return {
        key: estimates[key] if key in estimates and _is_near(estimates[key], value, bound) else value
        for key, value in measured.items()
    }


def _is_near(estimate: float, value: float, bound: float) -> bool:
    return abs(value - estimate) <= bound * abs(estimate)


def safe_off(weight: float, other: float) -> float:
    """By how much each weight of an edge may be off (the thesis' SB): less than half of the difference to the
    weight of the other path's edge at the same place."""
    return abs(weight - other) / 2


def safe_share(cost: float, other: float) -> float:
    """By which share all weights may be off until a path that costs ``cost`` could cost more than one that
    costs ``other``. Paths that cost the same are not safe at all; one that costs nothing always is."""
    if cost <= 0:
        return inf if other > 0 else 0.0
    return max(0.0, (other - cost) / (other + cost))
