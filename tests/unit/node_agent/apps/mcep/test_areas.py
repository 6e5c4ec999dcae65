"""Brokers' areas of any form: who serves a place, and whether each place has one broker."""

import random

import pytest

from node_agent.apps.mcep.areas import MOST_CORNERS, Areas, check_areas, shaped
from node_agent.apps.mcep.covering import find_fault
from node_agent.apps.mcep.geometry import Box, Point, Polygon, contains
from node_agent.apps.mcep.model import McepError

pytestmark = [pytest.mark.unit, pytest.mark.timeout(60)]
AREA = Box(0, 0, 100, 100)


def polygon(*corners: tuple[float, float]) -> Polygon:
    return Polygon(tuple(Point(*each) for each in corners))


BELOW = polygon((0, 0), (100, 0), (100, 100))
ABOVE = polygon((0, 0), (100, 100), (0, 100))
LETTER_L = polygon((0, 0), (100, 0), (100, 40), (60, 40), (60, 100), (0, 100))


def test_a_place_belongs_to_the_polygon_around_it_or_the_nearest() -> None:
    areas = shaped({"below": BELOW, "above": ABOVE})
    check_areas(areas, AREA)
    assert areas.leaf(Point(60, 20)) == "below" and areas.leaf(Point(20, 60)) == "above"
    assert areas.leaf(Point(150, 40)) == "below" and areas.leaf(Point(40, 150)) == "above"
    assert areas.leaf(Point(100, 0)) == "below" and areas.leaf(Point(0, 100)) == "above"


def test_polygons_and_boxes_cover_an_area_together() -> None:
    check_areas(shaped({"el": LETTER_L, "rest": Box(60, 40, 100, 100)}), AREA)
    check_areas(shaped({"all": polygon((-50, -50), (300, -50), (-50, 300))}), AREA)  # beyond it, too


@pytest.mark.parametrize(
    ("shapes", "words"),
    [
        ({"below": BELOW}, "no broker serves the area at"),
        ({"below": BELOW, "all": AREA}, "both all and below serve the area at"),
        ({"el": LETTER_L, "rest": Box(61, 40, 100, 100)}, "no broker serves the area at (60.5, 70) m"),
        ({"el": LETTER_L, "rest": Box(59, 40, 100, 100)}, "both el and rest serve the area at (59.5, 70) m"),
        # A bow tie: its sides cross, and two of its quarters are missing.
        ({"bow": polygon((0, 0), (100, 100), (100, 0), (0, 100))}, "no broker serves the area at (50, 25) m"),
        ({"far": polygon((200, 0), (300, 0), (300, 100))}, "no broker serves the area at (50, "),
    ],
)
def test_a_place_without_a_broker_or_with_two_is_named(shapes: dict[str, Box | Polygon], words: str) -> None:
    with pytest.raises(McepError) as said:
        check_areas(shaped(shapes), AREA)
    assert words in str(said.value)


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        (polygon((0, 0), (1, 1)), "3 to 1000 corners"),
        (polygon((0, 0), (1, float("nan")), (1, 0)), "finite numbers"),
        (polygon(*((number, number % 7) for number in range(MOST_CORNERS + 1))), f"more than {MOST_CORNERS}"),
    ],
)
def test_a_form_without_meaning_is_refused(shape: Polygon, words: str) -> None:
    with pytest.raises(McepError, match=words):
        shaped({"odd": shape})


def test_faults_are_found_where_random_points_find_them() -> None:
    rng = random.Random(3)
    agreed = {True: 0, False: 0}
    for _ in range(200):
        cut = [Point(0, rng.uniform(5, 95)), *_bends(rng), Point(100, rng.uniform(5, 95))]
        moved = [Point(x, y + (rng.choice([-3.0, 3.0]) if rng.random() < 0.1 else 0)) for x, y in cut]
        shapes: dict[str, Box | Polygon] = {
            "low": Polygon((Point(0, 0), Point(100, 0), *reversed(cut))),
            "high": Polygon((*moved, Point(100, 100), Point(0, 100))),
        }
        fault = find_fault(shapes, AREA)
        right = cut == moved
        assert (fault is None) == right
        agreed[right] += 1
        if fault is not None:
            owners = [name for name, shape in shapes.items() if contains(shape, fault.place)]
            assert sorted(owners) == sorted(fault.owners)
        else:
            for _ in range(20):
                point = Point(rng.uniform(1, 99), rng.uniform(1, 99))
                assert sum(contains(shape, point) for shape in shapes.values()) == 1
    assert min(agreed.values()) > 20


def _bends(rng: random.Random) -> list[Point]:
    return [Point(float(x), rng.uniform(5, 95)) for x in range(20, 100, 20)]


def test_boxes_alone_are_as_before() -> None:
    areas = Areas({"left": Box(0, 0, 50, 100), "right": Box(50, 0, 100, 100)})
    check_areas(areas, AREA)
    assert areas.leaf(Point(50, 50)) == "left" and areas.polygons == {}
