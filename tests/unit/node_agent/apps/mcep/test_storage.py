"""Events by place, time and type, against a plain list."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from node_agent.apps.mcep.geometry import Box, Circle, Point, Polygon, Region, contains, enclosing
from node_agent.apps.mcep.model import Event, McepError, atomic
from node_agent.apps.mcep.storage import Storage

pytestmark = pytest.mark.unit

coordinates = st.integers(-20, 20).map(lambda n: n * 12.5)
points = st.builds(Point, coordinates, coordinates)
sizes = st.integers(1, 20).map(lambda n: n * 12.5)
regions: st.SearchStrategy[Region] = st.one_of(
    st.builds(lambda p, w, h: Box(p.x, p.y, p.x + w, p.y + h), points, sizes, sizes),
    st.builds(lambda p, r: Circle(p.x, p.y, r), points, sizes),
    st.builds(lambda a, b, c: Polygon((a, b, c)), points, points, points),
)
events = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 30), points), max_size=60).map(
    lambda rows: [atomic(type, float(t), place, n, "car") for n, (type, t, place) in enumerate(rows)]
)


@settings(max_examples=150, deadline=None)
@given(events, st.lists(regions, min_size=1, max_size=2), st.integers(0, 30), st.integers(0, 30))
def test_it_finds_what_a_list_has(rows: list[Event], inside: list[Region], since: int, before: int) -> None:
    storage = Storage(1000.0, cell_m=50.0)
    for each in rows:
        storage.add(each)
    expected = sorted(
        (
            each for each in rows
            if each.type == "a" and since <= each.t < before
            and all(isinstance(each.place, Point) and contains(region, each.place) for region in inside)
        ),
        key=lambda each: each.key,
    )  # fmt: skip
    assert storage.find("a", inside, since, before) == expected
    assert storage.count("a", inside, since, before) == len(expected)
    earlier = [each for each in storage.find("a", inside) if each.t < before]
    assert storage.latest("a", inside, before, 3) == earlier[-3:]


def test_old_events_leave_unless_a_query_needs_them() -> None:
    storage = Storage(10.0)
    for t in range(40):
        storage.add(atomic("a", float(t), Point(t, 0.0), t))
    everywhere = [Box(-1e3, -1e3, 1e3, 1e3)]
    storage.expire(20.0, needed_since=5.0)
    assert storage.count("a", everywhere) == 35
    storage.expire(30.0)
    assert storage.count("a", everywhere) == len(storage) == 20
    storage.require("a", 30.0)
    storage.expire(41.0)
    assert len(storage) == 20


@pytest.mark.parametrize(("ttl", "cell"), [(0.0, 100.0), (math.nan, 100.0), (1.0, 0.0)])
def test_sizes_without_meaning_are_refused(ttl: float, cell: float) -> None:
    with pytest.raises(McepError, match="storage needs"):
        Storage(ttl, cell)


def test_places_of_complex_events_are_the_box_around_their_ancestors() -> None:
    assert enclosing([]) is None
    assert enclosing([Point(1, 2), Point(1, 2)]) == Point(1, 2)
    assert enclosing([Point(1, 2), Box(0, 3, 1, 4)]) == Box(0, 2, 1, 4)


def test_two_polygons_with_a_common_border_share_no_point() -> None:
    left = Polygon((Point(0, 0), Point(1, 0), Point(1, 2), Point(0, 2)))
    right = Polygon((Point(1, 0), Point(2, 0), Point(2, 2), Point(1, 2)))
    for y in (0.0, 0.5, 1.0):
        assert contains(left, Point(1, y)) + contains(right, Point(1, y)) == 1
