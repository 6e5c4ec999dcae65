"""Computes the reception of a frame while other transmissions start and end, each of which
changes the SINR.
"""

from collections.abc import Sequence
from math import inf, log10

from orchestrator.radio.reception import Curve


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
    edges = [end]
    for since, until, _ in disturbances:
        if start < since < end:
            edges.append(since)
        if start < until < end:
            edges.append(until)
    if len(edges) > 1:
        edges.sort()
    total, left = 0.0, start
    for right in edges:
        if right == left:
            continue
        interference = 0.0
        for since, until, power in disturbances:
            if since < right and until > left:
                interference += power
        sinr = signal_mw / (noise_mw + interference)
        per_byte = curve.ln_per_byte(10.0 * log10(sinr)) if sinr > 0.0 else -inf
        if per_byte == -inf:
            return per_byte  # one part that cannot be decoded is enough
        total += per_byte * length * (right - left) / (end - start)
        left = right
    return total
