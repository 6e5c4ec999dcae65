"""When the interest switches, and the two phases of a switch (T-13, T-14)."""

from collections.abc import Iterable

import pytest

from node_agent.apps.mcep.geometry import Box, Circle, Point, Region
from node_agent.apps.mcep.interest import (
    Always,
    Condition,
    QualityAware,
    Spatial,
    Switched,
    Timed,
    check_condition,
    exact_distance,
    must_switch,
    overlap_quality,
    safe_distance,
)
from node_agent.apps.mcep.model import Completeness, Event, McepError, Policy, Quality, Query, quality
from node_agent.apps.mcep.storage import Storage
from node_agent.apps.mcep.switching import Held, Hold, Reconfigurator, Switch
from node_agent.apps.mcep.windows import Count, Operator, RestrictionWindow, Window
from tests.unit.node_agent.apps.mcep.driving import Recorded, one_operator, seen

pytestmark = pytest.mark.unit

HERE = Switched(Point(0, 0), 10.0, Circle(0, 0, 100))


def decide(condition: Condition, x: float, t: float, events: Iterable[Event] = ()) -> bool:
    storage = Storage(100.0)
    for each in events:
        storage.add(each)

    def count(regions: Iterable[Region], since: float, before: float) -> int:
        return storage.count("s", regions, since, before)

    return must_switch(condition, HERE, Point(x, 0), t, Circle(x, 0, 100), count)


def test_conditions_on_time_and_distance_are_strict() -> None:
    assert decide(Always(), 0, 10.0)
    assert [decide(Timed(5.0), 0, t) for t in (14.0, 15.0, 15.1)] == [False, False, True]
    assert [decide(Spatial(50.0), x, 11.0) for x in (49, 50, 51)] == [False, False, True]


@pytest.mark.parametrize("inside", range(1, 5))
def test_t14_quality_is_counted_in_events(inside: int) -> None:
    events = [seen(f"both{n}", "s", 9.0, 25.0) for n in range(inside)]
    events += [seen("only here", "s", 9.0, -80.0), seen("only there", "s", 9.0, 140.0)]
    share = inside / (inside + 1)
    old = {("a", n) for n in range(inside)} | {("b", 0)}
    assert quality({("a", n) for n in range(inside)} | {("c", 0)}, old) == Quality(share, share)
    assert decide(QualityAware(Quality(share, 0.0), 5.0), 50, 10.0, events)  # compared by <=
    assert decide(QualityAware(Quality(0.0, share), 5.0), 50, 10.0, events)
    assert not decide(QualityAware(Quality(share - 0.01, share - 0.01), 5.0), 50, 10.0, events)
    assert decide(QualityAware(Quality(1.0, 1.0), 5.0), 0, 10.0, events)


def test_nothing_in_sight_is_perfect_quality() -> None:
    assert not decide(QualityAware(Quality(0.99, 0.99), 5.0), 500, 10.0)
    assert quality([], [("a", 1)]) == Quality(0.0, 0.0)


@pytest.mark.parametrize(
    ("wanted", "safe", "exact", "reached"),
    [
        (0.5, 292.89, 403.97, 0.6325),
        (0.8, 105.57, 157.74, 0.8658),
        (0.9, 51.32, 78.62, 0.9347),
        (0.95, 25.32, 39.28, 0.9678),
    ],
)
def test_t13_how_far_a_circle_may_move(wanted: float, safe: float, exact: float, reached: float) -> None:
    assert safe_distance(500, wanted) == pytest.approx(safe, abs=0.01)
    assert exact_distance(500, wanted) == pytest.approx(exact, abs=0.01)
    assert overlap_quality(500, safe_distance(500, wanted)) == pytest.approx(reached, abs=1e-4)
    assert overlap_quality(500, 1000) == 0.0


@pytest.mark.parametrize("condition", [Timed(-1), Spatial(float("nan")), QualityAware(Quality(2, 0), 1)])
def test_conditions_without_meaning_are_refused(condition: Condition) -> None:
    with pytest.raises(McepError, match="not"):
        check_condition(condition)


def query(completeness: Completeness = "weak") -> Query:
    graph = one_operator(Operator("o", (Window("w", "s", Count(1)),), RestrictionWindow(2.0), Recorded()))
    return Query("q", graph, "fo", lambda place: Box(*place, *place), 1.0, Policy(completeness=completeness))


def test_a_switch_begins_where_no_server_has_been() -> None:
    machine = Reconfigurator(query(), ["one", "two"])
    assert machine.located(Point(1, 2), 10.0) == [("one", Hold(1)), ("two", Hold(1))]
    assert machine.held("one", Held(1, 10.5)) == []
    assert machine.located(Point(3, 4), 11.0) == []  # a switch is under way
    orders = machine.held("two", Held(1, 9.0))
    (_, first), (_, second), *again = orders
    assert first == second and isinstance(first, Switch)
    assert (first.marker.t, first.marker.points) == (10.5, {"s": 7.5, "o": 9.5})
    assert again == [("one", Hold(2)), ("two", Hold(2))]  # the newest place is looked at now


def test_answers_of_others_and_of_old_switches_are_not_taken() -> None:
    machine = Reconfigurator(query(), ["one", "two"])
    machine.located(Point(1, 2), 10.0)
    machine.held("one", Held(1, 10.0))
    assert machine.held("stranger", Held(1, 10.0)) == []
    assert machine.held("two", Held(7, 10.0)) == [] and machine.markers == []


def test_best_effort_does_not_ask() -> None:
    machine = Reconfigurator(query("best_effort"), ["one"])
    ((_, order),) = machine.located(Point(1, 2), 10.0)
    assert isinstance(order, Switch) and order.marker.t == 10.0


def test_a_query_ends_with_an_epoch_without_region() -> None:
    machine = Reconfigurator(query("best_effort"), ["one"])
    machine.located(Point(1, 2), 10.0)
    machine.end(20.0)
    assert machine.ended and machine.located(Point(5, 5), 21.0) == [] and machine.end(22.0) == []


def test_somebody_must_cover_the_area() -> None:
    with pytest.raises(McepError, match="no server covers its area"):
        Reconfigurator(query(), [])
