"""Chooses which selections are processed and which others get their results (thesis, Alg. 5.1 and 5.2).

Maximum similarity (MSH; the thesis' evaluation says MQC) estimates all pairs of neighbours, and takes the
selection that stands for most until all are covered. Maximum neighbour (MNH) goes through operators by how
much of their interest others share, and gives each selection to the first chosen one that suffices.

Both give groups such that each batch is in exactly one group, and the batch that is processed is in its own.
"""

import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from node_agent.apps.mcep.reuse.batches import Batch, Timeline
from node_agent.apps.mcep.reuse.judging import Judge

Neighbours = Mapping[str, AbstractSet[str]]
"""By operator, those on whose behalf it may process."""


class Group(NamedTuple):
    """``by`` is processed; all of ``covered`` get its results, itself among them."""

    by: Batch
    covered: tuple[Batch, ...]


Heuristic = Callable[[Sequence[Batch], Neighbours, Judge, Mapping[str, float]], list[Group]]


def no_reuse(
    batches: Sequence[Batch], neighbours: Neighbours, judge: Judge, priority: Mapping[str, float]
) -> list[Group]:
    """Everything is processed: what reuse is compared with."""
    return [Group(each, (each,)) for each in batches]


def maximum_similarity(
    batches: Sequence[Batch], neighbours: Neighbours, judge: Judge, priority: Mapping[str, float]
) -> list[Group]:
    """Alg. 5.1. Of those that cover equally many the first is taken; ``priority`` is not used."""
    covers = _all_pairs(batches, neighbours, judge)
    left = set(range(len(batches)))
    queue = [(-len(each), number) for number, each in enumerate(covers)]
    heapq.heapify(queue)
    groups = []
    while left:
        size, number = heapq.heappop(queue)
        if number not in left:
            continue
        covered = covers[number] & left
        if len(covered) < -size:  # others were covered meanwhile: it queues again with what is left
            heapq.heappush(queue, (-len(covered), number))
            continue
        left -= covered
        groups.append(Group(batches[number], tuple(batches[each] for each in sorted(covered))))
    return groups


def _all_pairs(batches: Sequence[Batch], neighbours: Neighbours, judge: Judge) -> list[set[int]]:
    """By batch, the numbers of those it can stand for."""
    numbers: dict[str, dict[int, int]] = {}
    for number, each in enumerate(batches):
        numbers.setdefault(each.operator, {})[id(each)] = number
    lines = {name: _Line([batches[each] for each in found.values()]) for name, found in numbers.items()}
    covers = []
    for number, used in enumerate(batches):
        found = {number}
        for name in sorted(neighbours.get(used.operator, ())):
            if name in lines and name != used.operator:
                for wanted in lines[name].of_interest(used, judge):
                    if judge.covers(used, wanted):
                        found.add(numbers[name][id(wanted)])
        covers.append(found)
    return covers


def maximum_neighbour(
    batches: Sequence[Batch], neighbours: Neighbours, judge: Judge, priority: Mapping[str, float]
) -> list[Group]:
    """Alg. 5.2. Unless ``times`` is ``any``, the nearest in time is tried first, not the first chosen one."""
    by_operator: dict[str, list[Batch]] = {}
    for each in batches:
        by_operator.setdefault(each.operator, []).append(each)
    order = sorted(by_operator, key=lambda name: (-priority.get(name, 0.0), name))
    chosen: dict[str, _Line] = {}
    groups: dict[int, tuple[Batch, list[Batch]]] = {}
    for name in order:
        willing = [line for other, line in chosen.items() if name in neighbours.get(other, ())]
        alone = _Line([])
        for wanted in by_operator[name]:
            used = next(
                (
                    each
                    for line in willing
                    for each in line.of_interest(wanted, judge)
                    if judge.covers(each, wanted)
                ),
                None,
            )
            if used is None:
                groups[id(wanted)] = (wanted, [wanted])
                alone.add(wanted)
            else:
                groups[id(used)][1].append(wanted)
        chosen[name] = alone
    return [Group(by, tuple(covered)) for by, covered in groups.values()]


class _Line:
    """Batches of one operator, and which of them are worth an estimate."""

    def __init__(self, batches: list[Batch]) -> None:
        self._batches = batches
        self._timeline = Timeline(batches)

    def add(self, given: Batch) -> None:
        self._batches.append(given)
        self._timeline.add(given)

    def of_interest(self, given: Batch, judge: Judge) -> Iterator[Batch]:
        times = judge.rules.times
        if times == "any":
            yield from self._batches
            return
        for each in self._timeline.near(given):
            if times == "overlapping" or each.end == given.end:
                yield each


HEURISTICS: dict[str, Heuristic] = {
    "none": no_reuse,
    "similarity": maximum_similarity,
    "neighbour": maximum_neighbour,
}
