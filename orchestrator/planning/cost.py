"""Estimates how long the cells of a sweep take, so that the longest go first and the time left can be told.

The first guess is from nodes and seconds. Finished cells correct it: by how much all of them were off, and
by how much those with a certain value of a factor were off more than others (a log-linear model of main
effects).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from orchestrator.planning.sweep import Cell

START_S = 1.5
"""To start and judge a run, whatever it does."""
VIRTUAL_S = 0.004
"""A first guess for a second of virtual time, for each node; finished cells correct it."""
SETTLING_S = 15.0
"""To bring up and settle a network in real time."""
_PRIOR_CELLS = 1.0
"""An effect that only one cell shows is taken for half of what it seems."""
Factor = tuple[str, str]


def first_guess(cell: Cell) -> float:
    """Returns seconds, from what is known before any cell has run."""
    experiment = cell.experiment
    seconds = experiment.warmup + experiment.duration
    if not experiment.traits.virtual_time:
        return seconds + SETTLING_S
    return START_S + VIRTUAL_S * seconds * len(experiment.topology.node_names)


@dataclass
class Costs:
    """Expected seconds of cells by number; ``learn`` what finished ones took."""

    guesses: Mapping[int, float]
    factors: Mapping[int, tuple[Factor, ...]]
    _off: dict[int, float] = field(default_factory=dict)
    """By how much each finished cell's guess was off, as a logarithm."""
    _effects: dict[Factor, float] = field(default_factory=dict)
    _common: float = 0.0
    _fitted: int = 0

    @classmethod
    def of(cls, cells: Sequence[Cell]) -> "Costs":
        return cls(
            {cell.number: first_guess(cell) for cell in cells},
            {cell.number: _named(cell.factors) for cell in cells},
        )

    @property
    def learnt(self) -> int:
        return len(self._off)

    def learn(self, number: int, seconds: float) -> None:
        self._off[number] = math.log(max(seconds, 1e-3) / self.guesses[number])
        # Fitting anew after each of thousands of cells would cost more than it gives.
        if len(self._off) - self._fitted >= max(1, self._fitted // 20):
            self._fit()

    def expected(self, number: int) -> float:
        effects = sum(self._effects.get(factor, 0.0) for factor in self.factors[number])
        return self.guesses[number] * math.exp(self._common + effects)

    def longest_first(self, numbers: Sequence[int]) -> list[int]:
        return sorted(numbers, key=lambda number: (-self.expected(number), number))

    def left(self, waiting: Sequence[int], running: Mapping[int, float], places: int) -> float:
        """Returns the seconds until all are done. ``running``: for how long each has been running."""
        rest = [max(0.0, self.expected(number) - seconds) for number, seconds in running.items()]
        rest += [self.expected(number) for number in waiting]
        return max([sum(rest) / max(1, places), *rest], default=0.0)

    def _fit(self) -> None:
        self._fitted = len(self._off)
        self._common = sum(self._off.values()) / len(self._off)
        by_factor: dict[Factor, list[float]] = {}
        for number, off in self._off.items():
            for factor in self.factors[number]:
                by_factor.setdefault(factor, []).append(off - self._common)
        self._effects = {
            factor: sum(values) / (len(values) + _PRIOR_CELLS) for factor, values in by_factor.items()
        }


def _named(factors: Mapping[str, Any]) -> tuple[Factor, ...]:
    """Returns the factors without the seed, which says nothing about how long a run takes."""
    return tuple((name, str(value)) for name, value in factors.items() if name.split(".")[-1] != "seed")
