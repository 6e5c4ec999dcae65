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
    edges = {start, end}
    for since, until, _ in disturbances:
        if start < since < end:
            edges.add(since)
        if start < until < end:
            edges.add(until)
    total = 0.0
    for left, right in pairwise(sorted(edges)):
        interference = 0.0
        for since, until, power in disturbances:
            if since < right and until > left:
                interference += power
        per_byte = curve.ln_per_byte(mw_to_dbm(signal_mw / (noise_mw + interference)))
        total += per_byte * length * (right - left) / (end - start)
    return total
