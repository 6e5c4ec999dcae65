"""Runs the covering task once a period over selections, and measures what it saves and what it costs."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.radio.report import Row
from benchmarks.reuse.traffic import Made, Traffic
from node_agent.apps.mcep.geometry import Box
from node_agent.apps.mcep.reuse.batches import ALONE, Batching, Timed, counterparts, split
from node_agent.apps.mcep.reuse.covering import HEURISTICS, Group, Neighbours
from node_agent.apps.mcep.reuse.judging import Judge, Rules
from node_agent.apps.mcep.reuse.neighbours import summed_overlap
from node_agent.apps.mcep.reuse.similarity import Candidate, by_atoms

PERIOD_S = 1.0
Whom = Callable[[float], tuple[Neighbours, Mapping[str, float]]]
"""At a time: who may process for whom, and operators' priorities."""


@dataclass
class Outcome:
    """Sums over all selections; ``reused_similarity``: over those that got another one's results."""

    selections: int = 0
    processed: int = 0
    comparisons: int = 0
    similarity: float = 0.0
    reused_similarity: float = 0.0

    def add(self, used: Candidate, wanted: Candidate) -> None:
        self.selections += 1
        found = by_atoms(wanted, used).quality
        mean = (found.precision + found.recall) / 2
        self.similarity += mean
        if used is wanted:
            self.processed += 1
        else:
            self.reused_similarity += mean

    def row(self) -> Row:
        reused = self.selections - self.processed
        return {
            "selections": self.selections,
            "processed": self.processed / self.selections if self.selections else math.nan,
            "similarity": self.similarity / self.selections if self.selections else math.nan,
            "similarity_reused": self.reused_similarity / reused if reused else None,
            "comparisons": self.comparisons,
            "per_covered": self.comparisons / self.selections if self.selections else math.nan,
        }


def play(
    made: Iterable[Made],
    rules: Rules,
    heuristic: str,
    whom: Whom,
    batching: Batching = ALONE,
    pairs: list[tuple[Candidate, Candidate]] | None = None,
) -> Outcome:
    """``pairs``: takes (used, wanted) of each selection."""
    outcome = Outcome()
    period = batching.seconds if isinstance(batching, Timed) else PERIOD_S
    periods: dict[int, dict[str, list[Candidate]]] = defaultdict(lambda: defaultdict(list))
    for each in made:
        periods[math.floor(each.at / period)][each.candidate.operator].append(each.candidate)
    for number, waiting in sorted(periods.items()):
        neighbours, priority = whom(number * period)
        batches = [batch for each in waiting.values() for batch in split(each, batching)]
        judge = Judge(rules)
        for group in HEURISTICS[heuristic](batches, neighbours, judge, priority):
            for used, wanted in covered_by(group):
                outcome.add(used, wanted)
                if pairs is not None:
                    pairs.append((used, wanted))
        outcome.comparisons += judge.comparisons
    return outcome


def covered_by(group: Group) -> list[tuple[Candidate, Candidate]]:
    """Which selection's results each one gets."""
    found = [(each, each) for each in group.by.selections]
    for other in group.covered:
        if other is not group.by:
            found += counterparts(group.by, other)
    return found


def everyone(given: Traffic, names: Sequence[str], edge: float) -> Whom:
    """All are neighbours; priorities by the squares of that time."""
    neighbours = {name: {other for other in names if other != name} for name in names}

    def at(t: float) -> tuple[Neighbours, Mapping[str, float]]:
        squares: dict[str, Box] = {name: given.region(name, edge, t) for name in names}
        return neighbours, {
            name: summed_overlap(mine, [its for other, its in squares.items() if other != name])
            for name, mine in squares.items()
        }

    return at
