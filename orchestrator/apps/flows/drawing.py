"""Draws pairs of nodes for flows: the same seed gives the same pairs."""

import random
from collections.abc import Sequence
from itertools import permutations

Pair = tuple[str, str]


def most_pairs(nodes: int) -> int:
    return nodes * (nodes - 1)


def drawn_pairs(count: int, nodes: Sequence[str], rng: random.Random) -> list[Pair]:
    """``count`` different pairs of source and sink.

    As long as there are enough nodes, every node is an end of one pair only; then no source is a sink; and
    only if even that is too few, everybody may send to everybody. ``count`` is at most ``most_pairs``.
    """
    order = rng.sample(list(nodes), len(nodes))
    half = min(count, len(order) // 2)
    sources, sinks = order[:half], order[half : 2 * half]
    pairs = [
        (source, sinks[(index + turn) % half]) for turn in range(half) for index, source in enumerate(sources)
    ]
    if len(pairs) < count:
        taken = set(pairs)
        others = [pair for pair in permutations(order, 2) if pair not in taken]
        pairs += rng.sample(others, count - len(pairs))
    return pairs[:count]
