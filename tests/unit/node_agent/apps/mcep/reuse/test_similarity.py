"""How far selections stand for each other (T-30, T-32 to T-34)."""

import math

import pytest

from node_agent.apps.mcep.geometry import Box, Circle, Point, Polygon
from node_agent.apps.mcep.model import McepError, Quality
from node_agent.apps.mcep.reuse.cells import CellSize, joined
from node_agent.apps.mcep.reuse.disparity import disparity, disparity_of_places
from node_agent.apps.mcep.reuse.incomplete import (
    at_least,
    chance,
    completed,
    current,
    most_to_come,
    pattern,
    shared_recent,
)
from node_agent.apps.mcep.reuse.overlap import area, common_area
from node_agent.apps.mcep.reuse.similarity import (
    Candidate,
    Overlap,
    Received,
    by_atoms,
    by_cells,
    by_interest,
    by_recent,
    by_results,
    suffices,
)
from tests.unit.node_agent.apps.mcep.reuse.selections import (
    INTERESTS,
    S2,
    S3,
    S4,
    S5,
    atoms,
    selection,
)

pytestmark = pytest.mark.unit


def test_t30_precision_of_the_tables_selections() -> None:
    assert by_atoms(selection("Q1", 4, S4), selection("Q3", 5, S5)).quality.precision == 1 / 2
    assert by_atoms(selection("Q3", 2, S2), selection("Q2", 3, S3)).quality.precision == 2 / 3


@pytest.mark.parametrize(
    ("events", "queries", "expected"),
    [
        ({1, 2, 3, 6, 7}, ("Q3",), 0.0),
        ({1, 2, 4, 6, 7}, ("Q2", "Q3"), 0.2),
        ({1, 2, 4, 5, 6}, ("Q1", "Q2"), 0.5),
        ({1, 2, 4, 5, 6}, ("Q1", "Q2", "Q3"), 7 / 15),
    ],
)
def test_t30_disparity_grows_with_reuse(events: set[int], queries: tuple[str, ...], expected: float) -> None:
    interests = [INTERESTS[each].__contains__ for each in queries]
    assert disparity(events, interests) == pytest.approx(expected)


def test_disparity_by_places_counts_equal_interests_once() -> None:
    left, right = Box(0, 0, 2, 1), Box(1, 0, 3, 1)
    places = [Point(0.5, 0.5), Point(1.5, 0.5)]
    assert disparity_of_places(places, [left, right]) == 0.25
    assert disparity_of_places(places, [left, left]) == 0.0
    assert disparity_of_places([], [left]) == disparity_of_places(places, []) == 0.0


def test_t32_a_selection_that_misses_an_event() -> None:
    wanted, used = selection("Q2", 3, {1, 2}, missing=1), selection("Q3", 2, S2)
    now = by_atoms(wanted, used)
    assert completed(now, 1, 0, 0.0).quality == Quality(2 / 3, 2 / 3)
    assert completed(now, 1, 0, 1.0).quality == Quality(1.0, 1.0)
    assert most_to_come(now, 1, 0) * 3 / 3 == 1.0  # K = M = 3
    assert at_least(1, shared=3, recent=3, missing=1) == 1.0
    assert chance(now, 1, 0, 3, 3, Quality(0.9, 0.9)) == 1.0


def test_the_urn_is_hypergeometric_and_is_taken_again_if_too_small() -> None:
    assert at_least(1, 2, 4, 2) == pytest.approx(5 / 6)
    assert at_least(2, 2, 4, 2) == pytest.approx(1 / 6)
    assert at_least(0, 0, 0, 5) == 1.0 and at_least(1, 3, 0, 5) == 0.0 and at_least(3, 4, 4, 2) == 0.0
    assert at_least(2, 1, 2, 4) == 1.0, "4 of an urn of 2, twice: all of it is drawn"
    expected = sum(at_least(k, 3, 10, 4) for k in range(1, 5))
    assert expected == pytest.approx(4 * 3 / 10), "the mean is m K / M"


def test_what_is_to_come_pairs_no_events_that_are_known_to_differ() -> None:
    assert most_to_come(Overlap(2, 3, 3), 0, 0) == 0, "both complete"
    assert most_to_come(Overlap(0, 1, 0), 0, 5) == 1, "the other may still get the one event"
    assert most_to_come(Overlap(0, 2, 2), 1, 1) == 2
    assert most_to_come(Overlap(1, 1, 3), 4, 0) == 2, "it gets two that the other has, and two of its own"
    assert most_to_come(Overlap(1, 1, 3), 4, 0, later=True) == 0, "a complete one gets nothing new"
    assert completed(Overlap(2, 2, 2), 2, 4, 0.5, later=True) == (3, 4, 6)


def test_shares_by_current_content_by_recent_events_and_by_predicted_interests() -> None:
    wanted = Candidate("a", 0, 0, 1, atoms({1, 2}), atoms({1, 2}), 2, recent=atoms(range(10)))
    used = Candidate("b", 0, 0, 1, atoms({1}), atoms({1}), 3, recent=atoms(range(7, 20)))
    now = by_atoms(wanted, used)
    assert current(wanted, used, now) == 0.5
    assert pattern(wanted, used, now) == 0.3
    places = [Point(0.5, 0), Point(1.5, 0), Point(9, 0)]
    assert shared_recent(places, Circle(0, 0, 2), Circle(2, 0, 1)) == (1, 2)


def test_t33_results_of_the_same_selection_weigh_by_atomic_events_and_similarity() -> None:
    e8, e11 = ("Q2", 0, 4.0, 0), ("Q1", 0, 6.0, 0)
    wanted = Candidate("Q1", 0, 0, 6, results={e8: Received(3, 2 / 3), e11: Received(2, 1 / 2)})
    used = Candidate("Q2", 0, 0, 6, results={e8: Received(3), e11: Received(2)})
    found = by_results(wanted, used)
    assert found == pytest.approx((3, 5, 5)) and found.quality.precision == pytest.approx(0.6)
    other = Candidate("Q3", 0, 0, 6, results={e8: Received(3), ("Q3", 0, 6.0, 0): Received(2)})
    assert by_results(wanted, other).shared == pytest.approx(2)


def test_t34_a_grid_counts_what_is_wanted_against_what_was_used() -> None:
    size = CellSize(metres=10, seconds=10)
    places = {n: Point(20.0 * n, 0) for n in range(1, 8)}
    actual = joined([{size.cell(places[n], 1.0): 1} for n in (1, 2, 4, 6, 7)])
    reuse = joined([{size.cell(places[n], 1.0): 1} for n in (1, 2, 3, 6, 7)])
    wanted = Candidate("Q1", 0, 0, 1, wanted_cells=actual, used_cells={})
    used = Candidate("Q2", 0, 0, 1, wanted_cells={}, used_cells=reuse)
    assert by_cells(wanted, used) == (4, 5, 5)
    assert by_cells(wanted, used).quality.precision == 4 / 5


def test_large_cells_take_neighbours_for_the_same() -> None:
    def at(x: float, metres: float) -> dict[tuple[int, int, int], int]:
        return {CellSize(metres, 1.0).cell(Point(x, 0), 0.0): 1}

    for metres, shared in ((10.0, 0), (100.0, 1)):
        wanted = Candidate("a", 0, 0, 0, wanted_cells=at(12, metres))
        used = Candidate("b", 0, 0, 0, used_cells=at(31, metres))
        assert by_cells(wanted, used).shared == shared
    with pytest.raises(McepError, match="a cell has a size above 0"):
        CellSize(0, 1)


def test_estimates_of_operators() -> None:
    left = Candidate("a", 0, 0, 1, region=Box(0, 0, 4, 1), recent=atoms({1, 2, 3, 4}))
    right = Candidate("b", 0, 0, 1, region=Box(1, 0, 3, 1), recent=atoms({2, 3, 5}))
    assert by_interest(left, right) == (2, 4, 2) and by_interest(left, left) == (4, 4, 4)
    assert by_recent(left, right) == (2, 4, 3)
    with pytest.raises(McepError, match="each selection needs the region"):
        by_interest(left, selection("c", 0, {1}))


def test_equal_selections_suffice_unless_it_is_strict() -> None:
    same, near = Quality(1.0, 1.0), Quality(1.0, 0.9)
    assert suffices(same, same) and not suffices(same, same, strict=True)
    assert not suffices(near, same) and suffices(near, Quality(0.9, 0.8))
    assert not suffices(near, Quality(0.5, 0.9)), "above, not equal"


def test_areas_that_regions_have_in_common() -> None:
    square = Polygon((Point(0, 0), Point(2, 0), Point(2, 2), Point(0, 2)))
    corner = Polygon((Point(0, 0), Point(4, 0), Point(4, 1), Point(1, 1), Point(1, 4), Point(0, 4)))
    assert common_area(Box(0, 0, 2, 2), Box(3, 0, 4, 1)) == 0.0
    assert common_area(square, corner) == pytest.approx(3.0, rel=0.01)
    assert area(corner) == pytest.approx(7.0, rel=0.01)
    assert common_area(Circle(0, 0, 1), Box(0, -2, 2, 2)) == pytest.approx(math.pi / 2, rel=0.01)
    assert common_area(Circle(0, 0, 1), Circle(0, 0, 3)) == pytest.approx(math.pi)
    assert common_area(Circle(0, 0, 1), Circle(2, 0, 1)) == 0.0
    half = common_area(Circle(0, 0, 500), Circle(403.97, 0, 500)) / area(Circle(0, 0, 500))
    assert half == pytest.approx(0.5, abs=1e-4)
    unequal = common_area(Circle(0, 0, 2), Circle(2.5, 0, 1))
    assert unequal == pytest.approx(_sampled(Circle(0, 0, 2), Circle(2.5, 0, 1)), rel=0.02)


def _sampled(one: Circle, other: Circle, step: float = 0.01) -> float:
    found = 0
    for ix in range(-200, 400):
        for iy in range(-200, 200):
            x, y = (ix + 0.5) * step, (iy + 0.5) * step
            found += all((x - c.x) ** 2 + (y - c.y) ** 2 <= c.radius**2 for c in (one, other))
    return found * step * step
