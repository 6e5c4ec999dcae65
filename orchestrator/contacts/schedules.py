"""Contacts by a rule: periodic, or random with given means."""

from collections.abc import Iterator
from random import Random


def periodic(up: float, down: float, phase: float, until: float) -> Iterator[tuple[float, float]]:
    """Yields the contacts of a link that is up for ``up`` seconds, down for ``down``, and so on for ever.

    One contact begins at ``phase``; so one that began before 0 may be under way at 0.
    """
    period = up + down
    number = -1 if phase > down else 0
    while (begin := phase + number * period) < until:
        yield max(0.0, begin), begin + up
        number += 1


def random(up: float, down: float, rng: Random, until: float) -> Iterator[tuple[float, float]]:
    """Yields contacts whose lengths and gaps are exponentially distributed with these means.

    At 0 the link is up with the probability that it has in the long run. A longer ``until`` adds contacts and
    changes none.
    """
    begin = 0.0 if rng.random() < up / (up + down) else rng.expovariate(1 / down)
    while begin < until:
        end = begin + rng.expovariate(1 / up)
        yield begin, end
        begin = end + rng.expovariate(1 / down)
