"""Which leaf broker serves which part of the plane, and how much of an uncertain place each of them has.

Areas are boxes that together cover a larger box. The outermost reach on without end: who is outside is at the
nearest.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf, isfinite
from typing import NamedTuple

from node_agent.migration.plan import MigrationError

Spot = tuple[float, float]
"""x and y in metres."""


class Span(NamedTuple):
    """``x0`` to ``x1`` by ``y0`` to ``y1``."""

    x0: float
    y0: float
    x1: float
    y1: float

    def shared(self, other: "Span") -> float:
        """The area of what two boxes have in common."""
        width = min(self.x1, other.x1) - max(self.x0, other.x0)
        height = min(self.y1, other.y1) - max(self.y0, other.y0)
        return width * height if width > 0 and height > 0 else 0.0

    def common(self, other: "Span") -> "Span":
        return Span(
            max(self.x0, other.x0), max(self.y0, other.y0), min(self.x1, other.x1), min(self.y1, other.y1)
        )


@dataclass(frozen=True)
class Leaves:
    """``boxes``: by leaf broker."""

    boxes: Mapping[str, Span]
    reach: Mapping[str, Span] = field(init=False, compare=False, repr=False)
    """The same, with the outermost sides moved to infinity."""

    def __post_init__(self) -> None:
        if not self.boxes:
            raise MigrationError("leaf brokers need at least one area")
        for name, box in self.boxes.items():
            if not all(map(isfinite, box)) or box.x0 >= box.x1 or box.y0 >= box.y1:
                raise MigrationError(f"the area of {name} must be finite and must end after it begins")
        hull = self.hull
        object.__setattr__(self, "reach", {name: _opened(box, hull) for name, box in self.boxes.items()})

    @property
    def hull(self) -> Span:
        boxes = self.boxes.values()
        return Span(
            min(each.x0 for each in boxes),
            min(each.y0 for each in boxes),
            max(each.x1 for each in boxes),
            max(each.y1 for each in boxes),
        )

    def leaf(self, spot: Spot) -> str:
        """Of a spot on a border: the leaf whose area begins there."""
        x, y = spot
        for name, box in self.reach.items():
            if box.x0 <= x < box.x1 and box.y0 <= y < box.y1:
                return name
        raise MigrationError(f"no leaf broker serves {x:g}, {y:g}")

    def shares(self, place: Span) -> dict[str, float]:
        """How much of a box each leaf has; together 1 if areas leave no gap."""
        whole = (place.x1 - place.x0) * (place.y1 - place.y0)
        if not whole > 0:
            return {self.leaf((place.x0, place.y0)): 1.0}
        found = {name: box.shared(place) / whole for name, box in self.reach.items()}
        return {name: share for name, share in found.items() if share > 0}


def _opened(box: Span, hull: Span) -> Span:
    return Span(
        -inf if box.x0 == hull.x0 else box.x0,
        -inf if box.y0 == hull.y0 else box.y0,
        inf if box.x1 == hull.x1 else box.x1,
        inf if box.y1 == hull.y1 else box.y1,
    )


def square(spot: Spot, half: float) -> Span:
    """A square around a spot."""
    return Span(spot[0] - half, spot[1] - half, spot[0] + half, spot[1] + half)


def grid(names: list[str], columns: int, width: float, height: float) -> Leaves:
    """Equal areas, row by row."""
    rows, rest = divmod(len(names), columns)
    if rest:
        raise MigrationError(f"{len(names)} leaf brokers do not fill rows of {columns}")
    dx, dy = width / columns, height / rows
    return Leaves(
        {
            name: Span(
                (n % columns) * dx, (n // columns) * dy, (n % columns + 1) * dx, (n // columns + 1) * dy
            )
            for n, name in enumerate(names)
        }
    )
