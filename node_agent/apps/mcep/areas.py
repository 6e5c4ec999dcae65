"""Which broker serves which part of the plane: boxes with names that together cover the area, once each.

areas = grid(["b1", "b2", "b3", "b4"], Box(0, 0, 1000, 1000))
areas.leaf(Point(750, 100))   # "b2"
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from node_agent.apps.mcep.geometry import Box, Point, contains
from node_agent.apps.mcep.model import McepError

MOST_BROKERS = 1000


@dataclass(frozen=True)
class Areas:
    """``boxes``: by broker. A point on a border belongs to the first box that has it."""

    boxes: Mapping[str, Box]

    def leaf(self, point: Point) -> str:
        """The broker of a place; of a place outside of all boxes, the nearest."""
        for name, box in self.boxes.items():
            if contains(box, point):
                return name
        return min(self.boxes, key=lambda name: (_apart(self.boxes[name], point), name))


def _apart(box: Box, point: Point) -> float:
    dx = max(box.x0 - point.x, 0.0, point.x - box.x1)
    dy = max(box.y0 - point.y, 0.0, point.y - box.y1)
    return math.hypot(dx, dy)


def grid(brokers: Sequence[str], area: Box) -> Areas:
    """Cuts the area into boxes, as square as may be, row by row; the last row's are wider if brokers are
    too few to fill it."""
    if not brokers or len(set(brokers)) < len(brokers) or len(brokers) > MOST_BROKERS:
        raise McepError(f"an area needs 1 to {MOST_BROKERS} brokers, each named once")
    rows = max(1, round(math.sqrt(len(brokers) * (area.y1 - area.y0) / max(area.x1 - area.x0, 1e-9))))
    rows = min(rows, len(brokers))
    least, wider = divmod(len(brokers), rows)
    boxes: dict[str, Box] = {}
    names = iter(brokers)
    height = (area.y1 - area.y0) / rows
    for row in range(rows):
        columns = least + (1 if row < wider else 0)
        width = (area.x1 - area.x0) / columns
        for column in range(columns):
            boxes[next(names)] = Box(
                area.x0 + column * width,
                area.y0 + row * height,
                area.x1 if column == columns - 1 else area.x0 + (column + 1) * width,
                area.y1 if row == rows - 1 else area.y0 + (row + 1) * height,
            )
    return Areas(boxes)


def check_areas(areas: Areas, area: Box) -> None:
    """Raises ``McepError`` if some place of the area has no broker, or two."""
    if not areas.boxes:
        raise McepError("no broker covers the area: name at least one")
    xs = _cuts([(box.x0, box.x1) for box in areas.boxes.values()], area.x0, area.x1)
    ys = _cuts([(box.y0, box.y1) for box in areas.boxes.values()], area.y0, area.y1)
    for x0, x1 in pairwise(xs):
        for y0, y1 in pairwise(ys):
            middle = Point((x0 + x1) / 2, (y0 + y1) / 2)
            found = [name for name, box in areas.boxes.items() if contains(box, middle)]
            if len(found) != 1:
                by = f"both {found[0]} and {found[1]} serve" if found else "no broker serves"
                raise McepError(f"{by} the area from ({x0:g}, {y0:g}) to ({x1:g}, {y1:g}) m")


def _cuts(spans: Sequence[tuple[float, float]], low: float, high: float) -> list[float]:
    inner = {edge for span in spans for edge in span if low < edge < high}
    return [low, *sorted(inner), high]
