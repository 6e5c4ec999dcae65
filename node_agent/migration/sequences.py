"""Uncertain plans as sequences of placements: what they may come to, and sequences as an uncertain plan."""

from collections.abc import Sequence
from heapq import nlargest
from typing import NamedTuple

from node_agent.migration.plan import Expected, Plan, Steps


class Likely(NamedTuple):
    """A certain plan and how likely it is followed."""

    chance: float
    plan: Plan


def decompose(plan: Plan, most: int) -> list[Likely]:
    """The likeliest ``most`` sequences of an uncertain plan, the likeliest first, as certain plans. Their
    chances are scaled so that they are 1 together."""
    if plan.certain:
        return [Likely(1.0, plan)]
    ways: dict[int, list[tuple[float, tuple[int, ...]]]] = {
        i: [(chance, (i,))] for i, chance in enumerate(plan.start) if chance > 0
    }
    for move in plan.moves:
        after: dict[int, list[tuple[float, tuple[int, ...]]]] = {}
        for i, found in ways.items():
            for j, share in enumerate(move[i]):
                if share > 0:
                    after.setdefault(j, []).extend((chance * share, (*way, j)) for chance, way in found)
        ways = {j: nlargest(most, found) for j, found in after.items()}
    best = nlargest(most, (each for found in ways.values() for each in found))
    whole = sum(chance for chance, _ in best)
    return [
        Likely(chance / whole, Plan(plan.steps, tuple((plan.stages[k][i],) for k, i in enumerate(way))))
        for chance, way in best
    ]


def merge(steps: Steps, sequences: Sequence[Likely]) -> Plan:
    """One plan of several certain ones with the same steps. Where they meet it no longer says which of them
    one came by."""
    names = [
        list(dict.fromkeys(each.plan.stages[k][0] for each in sequences)) for k in range(len(steps.times))
    ]
    numbers = [{expected: i for i, expected in enumerate(each)} for each in names]
    ways = [
        (each.chance, [numbers[k][stage[0]] for k, stage in enumerate(each.plan.stages)])
        for each in sequences
    ]
    start = [0.0] * len(names[0])
    for chance, way in ways:
        start[way[0]] += chance
    moves = []
    for k in range(len(steps.times) - 1):
        counts = [[0.0] * len(names[k + 1]) for _ in names[k]]
        for chance, way in ways:
            counts[way[k]][way[k + 1]] += chance
        moves.append(tuple(_shares(row) for row in counts))
    stages: tuple[tuple[Expected, ...], ...] = tuple(tuple(each) for each in names)
    return Plan(steps, stages, tuple(start), tuple(moves))


def _shares(row: list[float]) -> tuple[float, ...]:
    whole = sum(row)
    return tuple(each / whole if whole else 1 / len(row) for each in row)
