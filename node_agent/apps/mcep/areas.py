"""Which broker serves which part of the plane: boxes or polygons with names that together cover the area.

areas = grid(["b1", "b2", "b3", "b4"], Box(0, 0, 1000, 1000))
areas.leaf(Point(750, 100))   # "b2"
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

from node_agent.apps.mcep.covering import find_fault
from node_agent.apps.mcep.geometry import Box, Point, Polygon, bounds, contains, region_problem
from node_agent.apps.mcep.model import McepError

MOST_BROKERS = 1000
MOST_CORNERS = 400
"""Of all polygons together: each two of their sides are compared."""


@dataclass(frozen=True)
class Areas:
    """``boxes``: by broker; ``polygons``: of brokers that serve only that part of their boxes. A point on a
    border belongs to the first broker that has it."""

    boxes: Mapping[str, Box]
    polygons: Mapping[str, Polygon] = field(default_factory=dict)

    @cached_property
    def _served(self) -> tuple[tuple[str, tuple[float, float, float, float], Polygon | None], ...]:
        """Laid out for ``leaf``, which is asked for each event."""
        return tuple(
            (name, (box.x0, box.y0, box.x1, box.y1), self.polygons.get(name))
            for name, box in self.boxes.items()
        )

    def leaf(self, point: Point) -> str:
        """The broker of a place; of a place that nobody has, the nearest."""
        x, y = point
        for name, (x0, y0, x1, y1), polygon in self._served:
            if x0 <= x <= x1 and y0 <= y <= y1 and (polygon is None or contains(polygon, point)):
                return name
        return min(self.boxes, key=lambda name: (self._apart(name, point), name))

    def _apart(self, name: str, point: Point) -> float:
        polygon = self.polygons.get(name)
        return _apart(self.boxes[name], point) if polygon is None else _apart_of(polygon, point)


def shaped(shapes: Mapping[str, Box | Polygon]) -> Areas:
    """Returns areas of these forms. Raises ``McepError`` if one has no meaning."""
    for name, shape in shapes.items():
        if (problem := region_problem(shape)) is not None:
            raise McepError(f"the area of {name}: {problem}")
    polygons = {name: shape for name, shape in shapes.items() if isinstance(shape, Polygon)}
    if sum(len(each.corners) for each in polygons.values()) > MOST_CORNERS:
        raise McepError(f"the polygons have more than {MOST_CORNERS} corners together")
    return Areas({name: bounds(shape) for name, shape in shapes.items()}, polygons)


def _apart(box: Box, point: Point) -> float:
    dx = max(box.x0 - point.x, 0.0, point.x - box.x1)
    dy = max(box.y0 - point.y, 0.0, point.y - box.y1)
    return math.hypot(dx, dy)


def _apart_of(polygon: Polygon, point: Point) -> float:
    """How far a point outside of a polygon is from its border."""
    corners = polygon.corners
    return min(_from_side(point, *side) for side in zip(corners, (*corners[1:], corners[0]), strict=True))


def _from_side(point: Point, one: Point, other: Point) -> float:
    dx, dy = other.x - one.x, other.y - one.y
    length = dx * dx + dy * dy
    share = ((point.x - one.x) * dx + (point.y - one.y) * dy) / length if length else 0.0
    share = min(max(share, 0.0), 1.0)
    return math.hypot(point.x - one.x - share * dx, point.y - one.y - share * dy)


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
    if areas.polygons:
        _check_shapes({name: areas.polygons.get(name, box) for name, box in areas.boxes.items()}, area)
        return
    xs = _cuts([(box.x0, box.x1) for box in areas.boxes.values()], area.x0, area.x1)
    ys = _cuts([(box.y0, box.y1) for box in areas.boxes.values()], area.y0, area.y1)
    for x0, x1 in pairwise(xs):
        for y0, y1 in pairwise(ys):
            middle = Point((x0 + x1) / 2, (y0 + y1) / 2)
            found = [name for name, box in areas.boxes.items() if contains(box, middle)]
            if len(found) != 1:
                by = f"both {found[0]} and {found[1]} serve" if found else "no broker serves"
                raise McepError(f"{by} the area from ({x0:g}, {y0:g}) to ({x1:g}, {y1:g}) m")


def _check_shapes(shapes: Mapping[str, Box | Polygon], area: Box) -> None:
    fault = find_fault(shapes, area)
    if fault is None:
        return
    at = f"the area at ({fault.place.x:g}, {fault.place.y:g}) m"
    if not fault.owners:
        raise McepError(f"no broker serves {at}")
    one, other = fault.owners
    raise McepError(f"both {one} and {other} serve {at}")


def _cuts(spans: Sequence[tuple[float, float]], low: float, high: float) -> list[float]:
    inner = {edge for span in spans for edge in span if low < edge < high}
    return [low, *sorted(inner), high]
