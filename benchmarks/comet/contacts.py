"""Schedules of contacts for the oracle: when two nodes can talk."""

import random
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Schedule:
    """``ups``: begin and end of each contact, in order."""

    ups: tuple[tuple[float, float], ...]


def kept_promises(edp: float, eap: float, until: float, rng: random.Random) -> Schedule:
    """Never down for longer than ``edp`` nor up for shorter than ``eap``, otherwise at random."""

    def contacts() -> Iterator[tuple[float, float]]:
        at = rng.uniform(-eap, edp)
        while at < until:
            end = at + eap * rng.uniform(1.0, 2.0)
            yield max(at, 0.0), end
            at = end + edp * rng.uniform(0.2, 1.0)

    return Schedule(tuple((begin, end) for begin, end in contacts() if end > 0))


def wild(edp: float, eap: float, until: float, rng: random.Random) -> Schedule:
    """Exponential times: long gaps, and contacts too short for what waits."""

    def contacts() -> Iterator[tuple[float, float]]:
        at = rng.expovariate(1 / edp) if edp else 0.0
        while at < until:
            end = at + max(rng.expovariate(1 / eap), 0.05)
            yield at, end
            at = end + (rng.expovariate(1 / edp) if edp else 0.5)

    return Schedule(tuple(contacts()))
