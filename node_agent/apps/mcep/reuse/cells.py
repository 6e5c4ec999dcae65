"""Annotates events with counts of their atomic events in a grid of place and time (thesis, section 5.3.3).

A grid needs no ids, so an annotation stays small however many atomic events a result depends on. Counts are
added from the leaves to the root: an atomic event that comes in by two results counts twice.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from node_agent.apps.mcep.geometry import Point
from node_agent.apps.mcep.model import Cell, McepError

Cells = Mapping[Cell, int]


@dataclass(frozen=True, slots=True)
class CellSize:
    """Cells are squares of so many metres, for so many seconds."""

    metres: float
    seconds: float

    def __post_init__(self) -> None:
        if not (0 < self.metres < math.inf and 0 < self.seconds < math.inf):
            raise McepError(f"a cell has a size above 0, not {self.metres!r} m and {self.seconds!r} s")

    def cell(self, place: Point, t: float) -> Cell:
        return (
            math.floor(place.x / self.metres),
            math.floor(place.y / self.metres),
            math.floor(t / self.seconds),
        )


def joined(annotations: Iterable[Cells]) -> Cells:
    """The annotation of a selection, from those of its events."""
    found: Counter[Cell] = Counter()
    for each in annotations:
        found.update(each)
    return found


def cells_in_common(one: Cells, other: Cells) -> int:
    """How many atomic events both have at most: the lower count of each cell."""
    small, large = (one, other) if len(one) <= len(other) else (other, one)
    return sum(min(count, large.get(cell, 0)) for cell, count in small.items())
