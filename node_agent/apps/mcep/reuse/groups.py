"""Says which selection manager is responsible for which operators (thesis, section 5.3.2).

Operators of one type are divided by the places of their focal objects. A manager has a bounded number of
operators: with one more, its region is halved such that each half has equally many. Two halves become one
again when both together have no more than half of the bound.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from node_agent.apps.mcep.geometry import Point
from node_agent.apps.mcep.model import McepError


class Assigned(NamedTuple):
    """An operator changes its manager. None: it had none before, or has none from now on."""

    operator: str
    before: str | None
    after: str | None


@dataclass(slots=True)
class _Part:
    """A region: a leaf with operators, or two halves on both sides of ``at`` along an axis."""

    name: str
    operators: dict[str, Point] = field(default_factory=dict)
    halves: tuple["_Part", "_Part"] | None = None
    axis: int = 0
    at: float = 0.0

    def leaf_of(self, place: Point) -> "_Part":
        part = self
        while part.halves:
            part = part.halves[place[part.axis] >= part.at]
        return part

    def leaves(self) -> Iterator["_Part"]:
        if self.halves is None:
            yield self
        else:
            for half in self.halves:
                yield from half.leaves()

    def divide(self, most: int) -> None:
        """Halves a leaf with too many operators; one whose operators are all at one place stays."""
        if len(self.operators) <= most:
            return
        spreads = [[place[axis] for place in self.operators.values()] for axis in (0, 1)]
        self.axis = 0 if _spread(spreads[0]) >= _spread(spreads[1]) else 1
        values = sorted(spreads[self.axis])
        above = [each for each in values if each > values[0]]
        if not above:
            return
        self.at = max(values[len(values) // 2], above[0])
        self.halves = (_Part(f"{self.name}0"), _Part(f"{self.name}1"))
        for operator, place in self.operators.items():
            self.leaf_of(place).operators[operator] = place
        self.operators = {}
        for half in self.halves:
            half.divide(most)

    def unite(self, most: int) -> None:
        """Makes halves one again that are almost empty, from the leaves up."""
        if self.halves is None:
            return
        for half in self.halves:
            half.unite(most)
        low, high = self.halves
        if low.halves or high.halves or len(low.operators) + len(high.operators) > most // 2:
            return
        self.operators, self.halves = {**low.operators, **high.operators}, None


def _spread(values: list[float]) -> float:
    return max(values) - min(values)


class Groups:
    """``most``: operators of one manager.

    >>> groups = Groups(most=2)
    >>> groups.put("q1/mean", "mean", Point(0, 0))
    [Assigned(operator='q1/mean', before=None, after='mean/')]
    """

    def __init__(self, most: int = 100) -> None:
        if most < 1:
            raise McepError(f"a selection manager has at least one operator, not {most}")
        self._most = most
        self._types: dict[str, str] = {}
        self._roots: dict[str, _Part] = {}
        self.manager_of: dict[str, str] = {}

    @property
    def managers(self) -> set[str]:
        """Those that have operators; others need not exist."""
        return set(self.manager_of.values())

    def put(self, operator: str, type: str, place: Point) -> list[Assigned]:
        """An operator comes, or its focal object moved. Returns all who change their manager by it."""
        if self._types.setdefault(operator, type) != type:
            raise McepError(f"operator {operator} cannot become {type}: it is {self._types[operator]}")
        root = self._roots.setdefault(type, _Part(f"{type}/"))
        self._remove(root, operator)
        leaf = root.leaf_of(place)
        leaf.operators[operator] = place
        leaf.divide(self._most)
        root.unite(self._most)
        return self._changes(type)

    def leave(self, operator: str) -> list[Assigned]:
        type = self._types[operator]
        root = self._roots[type]
        self._remove(root, operator)
        root.unite(self._most)
        found = self._changes(type)
        del self._types[operator]
        return found

    @staticmethod
    def _remove(root: _Part, operator: str) -> None:
        for leaf in root.leaves():
            leaf.operators.pop(operator, None)

    def _changes(self, type: str) -> list[Assigned]:
        now = {operator: leaf.name for leaf in self._roots[type].leaves() for operator in leaf.operators}
        found = []
        for operator in [name for name, its in self._types.items() if its == type]:
            before, after = self.manager_of.pop(operator, None), now.get(operator)
            if after is not None:
                self.manager_of[operator] = after
            if before != after:
                found.append(Assigned(operator, before, after))
        return found
