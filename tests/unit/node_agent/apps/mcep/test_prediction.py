"""Graphs that are prepared for later, and graphs that several queries read (T-04, T-18 to T-20)."""

import pytest

from node_agent.apps.mcep.geometry import Circle, Point
from node_agent.apps.mcep.interest import Always, Timed
from node_agent.apps.mcep.model import Event, McepError, Quality, Query
from node_agent.apps.mcep.prediction import (
    Candidate,
    Deploy,
    Discard,
    Pipeline,
    best_for,
    choose_interests,
    dead_reckoning,
    may_use,
    next_update,
    on_route,
    preparation_time,
)
from node_agent.apps.mcep.sharing import RegionResults, SharedGraphs
from node_agent.apps.mcep.windows import Count, Full, Operator, RestrictionWindow, Window
from tests.unit.node_agent.apps.mcep.driving import EVERYWHERE, Machines, Recorded, one_operator, seen

pytestmark = pytest.mark.unit

HERE = Circle(0, 0, 100)
HALF = Quality(0.5, 0.5)
ONE, TWO = ("one", 1), ("two", 1)


def running(results: RegionResults) -> tuple[Machines, Recorded]:
    """A graph over one region whose results go to ``results``."""
    correlate = Recorded()
    operator = Operator("o", (Window("w", "s", Count(2)),), RestrictionWindow(2.0), correlate, Full("w"))
    machines = Machines(Query("q", one_operator(operator), "fo", lambda place: HERE, results.history))
    machines.switch(EVERYWHERE, results.begun)
    return machines, correlate


def feed(machines: Machines, results: RegionResults, until: float) -> dict[str, list[Event]]:
    """Results up to a time, by reader."""
    told = len(machines.delivered)
    machines.arrive(until)
    given: dict[str, list[Event]] = {}
    for each in machines.delivered[told:]:
        for name, _ in results.add(each.event):
            given.setdefault(name, []).append(each.event)
    results.progress(until)
    return given


def test_t04_two_queries_over_one_region_get_the_same() -> None:
    graphs = SharedGraphs(history=2.0, additional=2.0, linger=5.0)
    shared, fresh = graphs.enter(HERE, 5.0)
    assert fresh
    machines, _ = running(shared)
    machines.see([seen(f"e{n}", "s", n / 2) for n in range(30)])
    got: dict[str, list[Event]] = {"one": shared.join(ONE, 5.0, 2.0), "two": []}

    def run(until: float) -> None:
        for name, events in feed(machines, shared, until).items():
            got[name] += events

    run(6.0)
    again, fresh = graphs.enter(HERE, 6.0)
    assert again is shared and not fresh
    got["two"] += shared.join(TWO, 6.0, 2.0)
    run(8.0)
    shared.leave(ONE, 9.0)
    run(9.5)
    shared.leave(TWO, 10.0)
    run(12.0)
    times = {name: [each.t for each in events] for name, events in got.items()}
    assert (times["one"][0], times["one"][-1]) == (3.0, 8.5)
    assert (times["two"][0], times["two"][-1]) == (4.0, 9.5)
    for since in (4.0, 5.0, 6.0):  # Def. 10 asks for [6, 9], the print says [5, 9]
        one, two = ([each for each in got[name] if since <= each.t < 9] for name in ("one", "two"))
        assert one == two and one
    assert graphs.expire(14.0) == [] and graphs.expire(17.5) == [HERE] and not graphs.running


def test_a_shared_graph_must_run_on_long_enough_and_serves_only_what_it_has() -> None:
    with pytest.raises(McepError, match="must run on for more than 4 s after its last reader left"):
        SharedGraphs(2.0, 2.0, 4.0)
    shared = RegionResults(HERE, 5.0, 2.0)
    with pytest.raises(
        McepError, match="one wants 3 s of history from 6 s on, but this graph began at 5 s with 2 s"
    ):
        shared.join(ONE, 6.0, 3.0)


def test_t18_history_that_takes_longer_than_a_step_needs_more_eagerness() -> None:
    """A switch each 3 s, 5 s for the history: one step ahead is too late, two are not."""
    for eagerness, timely in ((1, False), (2, True)):
        pipeline = Pipeline(eagerness, lambda t: Point(t, 0.0), lambda t: t + 3.0, lambda place: 5.0)
        pipeline.located(0.0)
        ready = []
        for switch in (3.0, 6.0, 9.0, 12.0):
            prepared = pipeline.switched()
            assert prepared is not None and prepared.t == switch
            ready.append(prepared.is_timely)
            pipeline.located(switch)
        assert ready[-2:] == [timely, timely]


def test_predictions_that_are_off_are_made_again() -> None:
    where = {"speed": 1.0}
    pipeline = Pipeline(
        2,
        lambda t: Point(t * where["speed"], 0.0),
        lambda t: 3.0 * (t // 3 + 1),
        lambda place: 1.0,
        tolerance=2.0,
    )
    assert [each.step for each in pipeline.located(0.0)] == [1, 2]
    assert pipeline.located(1.0) == []
    where["speed"] = 1.5
    assert pipeline.located(2.0) == [Discard(2), Deploy(2, Point(9.0, 0.0), 6.0, 5.0, 6.0)]
    with pytest.raises(McepError, match="an eagerness of at least 1, not 0"):
        Pipeline(0, lambda t: Point(t, 0.0), lambda t: t, lambda place: 1.0)


def candidate(name: str, *events: int) -> Candidate:
    return Candidate(Point(len(name), 0), HERE, frozenset(("e", n) for n in events), float(len(events)))


RI, RI2, RI3, RI1 = candidate("i", 2, 3), candidate("ii", 1), candidate("iii", 1), candidate("iiii", 3)


@pytest.mark.parametrize(
    ("budget", "expected"), [(9, [RI, RI2, RI1]), (4, [RI, RI2, RI1]), (3, [RI, RI2]), (2, [RI])]
)
def test_t19_interests_within_a_budget(budget: float, expected: list[Candidate]) -> None:
    assert choose_interests([RI, RI2, RI3, RI1], HALF, budget) == expected


def test_t19_other_preferences() -> None:
    everything = [RI, RI2, RI3, RI1]
    assert choose_interests(everything, HALF, 2, "resource") == [RI2, RI1]
    assert choose_interests(everything, HALF, 9, "location", Point(3, 0))[0] is RI3
    with pytest.raises(McepError, match="say where the object is expected"):
        choose_interests(everything, HALF, 9, "location")
    assert best_for(RI.events, {1: RI2.events, 2: RI1.events}) == 2
    assert best_for(RI.events, {1: RI.events | RI2.events, 2: RI1.events}, "precision") == 2
    assert best_for(RI.events, {}) is None


def test_t20_a_prepared_graph_is_used_only_if_it_is_complete_and_good_enough() -> None:
    good, poor = Quality(0.9, 0.9), Quality(0.9, 0.4)
    assert may_use(True, good, HALF)
    assert not may_use(False, good, HALF) and not may_use(True, poor, HALF)
    assert may_use(False, good, HALF, best_effort=True)
    pipeline = Pipeline(1, lambda t: Point(t, 0.0), lambda t: None, lambda place: 1.0)
    assert pipeline.located(0.0) == [] and pipeline.switched() is None  # none: a reactive switch


def test_t20_history_of_a_prepared_graph_comes_from_what_it_kept() -> None:
    prepared = RegionResults(HERE, 10.0, 4.0)
    machines, correlate = running(prepared)
    machines.see([seen(f"e{n}", "s", float(n)) for n in range(12)])
    assert feed(machines, prepared, 10.0) == {}  # nobody reads it yet
    correlated = len(correlate.seen)
    history = prepared.join(ONE, 10.0, 4.0)
    assert [each.t for each in history] == [6.0, 7.0, 8.0, 9.0] and len(correlate.seen) == correlated
    assert [each.t for each in feed(machines, prepared, 12.0)["one"]] == [10.0, 11.0]


def test_where_and_when_the_object_is_expected() -> None:
    assert dead_reckoning([(Point(0, 0), 0.0), (Point(10, 20), 5.0)], 7.5) == Point(15, 30)
    assert dead_reckoning([(Point(1, 2), 0.0)], 9.0) == Point(1, 2)
    route = [(Point(0, 0), 0.0), (Point(10, 0), 10.0), (Point(10, 10), 20.0)]
    assert [on_route(route, t) for t in (-1, 5, 15, 99)] == [
        Point(0, 0), Point(5, 0), Point(10, 5), Point(10, 10),
    ]  # fmt: skip
    assert next_update(Timed(2.0), 10.0, []) == 12.0
    assert next_update(Always(), 10.0, [1.0, 4.0, 7.0]) == 13.0 and next_update(Always(), 10.0, [1.0]) is None


def test_preparation_takes_what_was_profiled() -> None:
    assert preparation_time(100.0, 0.005) == 0.5
    profile = [(0.0, 0.1), (1.0, 1.1), (2.0, 4.1)]
    assert preparation_time(100.0, 0.005, profile) == pytest.approx(0.6)
    assert preparation_time(300.0, 0.005, profile) == pytest.approx(2.6)
    assert preparation_time(600.0, 0.005, profile) == pytest.approx(7.1)
