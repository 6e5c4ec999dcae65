"""Computes the reception of a frame while other transmissions start and end, each of which
changes the SINR.
"""

from collections.abc import Sequence
from itertools import pairwise

from orchestrator.radio.reception import Curve
from orchestrator.radio.units_db import mw_to_dbm


def ln_success(
    curve: Curve,
    length: float,
    interval: tuple[int, int],
    signal_mw: float,
    noise_mw: float,
    disturbances: Sequence[tuple[int, int, float]],
) -> float:
    """Returns ln(reception probability) of ``length`` bytes sent evenly over ``interval``.

    Each disturbance is (start, end, power).
    """
    start, end = interval
    edges = [start, end]
    for since, until, _ in disturbances:
        if start < since < end:
            edges.append(since)
        if start < until < end:
            edges.append(until)
    edges.sort()
    total = 0.0
    for left, right in pairwise(edges):
        if left < right:
            power = noise_mw + sum([p for since, until, p in disturbances if since < right and until > left])
            per_byte = curve.ln_per_byte(mw_to_dbm(signal_mw / power))
            total += per_byte * length * (right - left) / (end - start)
    return total
