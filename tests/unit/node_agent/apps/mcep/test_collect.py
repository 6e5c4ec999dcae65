"""How far back streams begin, and which of them at all (T-15 to T-17)."""

import pytest

from node_agent.apps.mcep.collect import (
    Back,
    Collect,
    Collector,
    Observed,
    additional,
    changed_sources,
    collect_points,
    point_of,
)
from node_agent.apps.mcep.geometry import Box
from node_agent.apps.mcep.graph import OperatorGraph, Source, Stream
from node_agent.apps.mcep.model import Query
from node_agent.apps.mcep.windows import (
    Both,
    ByEvents,
    Count,
    Dependency,
    Full,
    Operator,
    RestrictionWindow,
    Span,
    Window,
    filter_operator,
)
from tests.unit.node_agent.apps.mcep.driving import Machines, Recorded, seen

pytestmark = pytest.mark.unit

BEFORE, AFTER = Box(0, -1, 100, 1), Box(50, -1, 150, 1)


def accidents(*, ordered: bool = True) -> OperatorGraph:
    """Fig. 1.1: three slow vehicles, and lane changes within 5 s (``ordered``: after them)."""
    speed = Operator(
        "speed", (Window("c", "speeds", Count(3)),), RestrictionWindow(10.0), Recorded(), Full("c")
    )
    lane = filter_operator("lane", "lanes", lambda each: True, "lane", 1.0)
    acc = Operator(
        "acc",
        (Window("a", "speed", Count(1)), Window("b", "lane", Span(5.0))),
        RestrictionWindow(20.0),
        Recorded(),
        Both((Full("a"),)),
        (Dependency("a", "end", "<=", "b", "start"),) if ordered else (),
    )
    return OperatorGraph(
        (Source("speeds", "speed"), Source("lanes", "lane")),
        (speed, lane, acc),
        (
            Stream("speeds", "speed"), Stream("lanes", "lane"), Stream("speed", "acc"), Stream("lane", "acc"),
            Stream("acc"),
        ),
    )  # fmt: skip


def test_t15_sources_only_in_the_overlap_are_left_alone() -> None:
    graph = accidents(ordered=False)
    found = []
    for partial in (False, True):
        query = Query("q", graph, "fo", lambda place: BEFORE, 4.0)
        machines = Machines(query, partial=partial)
        machines.switch(BEFORE, 0.0)
        cars = [seen(f"s{n}", "speed", 1.0 + n / 2, 75.0) for n in range(10)]
        machines.see([*cars, *(seen(f"l{n}", "lane", 1.25 + n, 80.0) for n in range(5))])
        machines.arrive(6.0)
        machines.sent.clear()
        changed = changed_sources(graph, BEFORE, AFTER, 6.0, 4.0, machines.storage.count)
        assert changed == frozenset()
        machines.switch(AFTER, 6.0, changed if partial else None)
        machines.see([seen("s99", "speed", 7.0, 120.0), seen("s98", "speed", 7.5, 20.0)])
        machines.arrive(8.0)
        machines.switch(None, 8.0)
        found.append(machines.results(2))
        if partial:
            assert collect_points(graph, 2, 6.0, 4.0, changed) == {}  # nobody is asked
            assert [each.source for each in machines.events_sent("speeds")] == ["s99"]  # only what is live
    assert found[0] == found[1] and len(found[0]) > 5


def test_changes_outside_of_the_overlap_are_found() -> None:
    machines = Machines(Query("q", accidents(), "fo", lambda place: BEFORE, 4.0))
    machines.see([seen("s1", "speed", 1.0, 25.0), seen("l1", "lane", 1.0, 75.0)])
    assert changed_sources(accidents(), BEFORE, AFTER, 6.0, 4.0, machines.storage.count) == {"speeds"}


def test_t16_state_aware_needs_nothing_where_the_other_input_is_empty() -> None:
    graph, changed = accidents(), frozenset({"speeds"})
    seen_by = {"acc": Observed(oldest={"lane": None})}
    found = collect_points(graph, 2, 100.0, 4.0, changed, "time_span", seen_by, aware=True)
    assert found["speed"] == Back() and "lane" not in found  # only acc → speed is asked
    only_speed = additional(graph.by_name["speed"], "speeds", "time_span", Observed(gaps={"speeds": 2.0}))
    assert only_speed == Back(6.0)
    held = {"acc": Observed(oldest={"lane": 97.0})}
    found = collect_points(graph, 2, 100.0, 4.0, changed, "basic", held, aware=True)
    assert found["speed"] == Back(3.0)


def test_t16_counting_takes_the_last_events_before_the_spans() -> None:
    graph = accidents()
    found = collect_points(graph, 2, 100.0, 4.0, frozenset({"speeds"}), "count")
    assert found["speeds"] == Back(4.0 + 5.0, 1 + 3)  # (S:δ) + (N:1) + (S:Δa(b)) + (N:3)
    times = [float(t) for t in range(91)]
    assert point_of(found["speeds"], 100.0, 50.0, times) == 87.0  # the fourth before 91
    assert point_of(found["speeds"], 100.0, 50.0, times[:3]) == 50.0  # too few: the basic point


def test_t17_a_producer_is_asked_once_for_the_largest() -> None:
    windows = (Window("w", "src", Count(1)),)
    shared = Operator("shared", windows, RestrictionWindow(2.0), Recorded())
    users = [
        Operator(name, (Window("w", "shared", Count(1)),), RestrictionWindow(length), Recorded())
        for name, length in (("one", 5.0), ("two", 8.0))
    ]
    graph = OperatorGraph(
        (Source("src", "src"),),
        (shared, *users),
        (
            Stream("src", "shared"),
            *(Stream("shared", each.name) for each in users),
            Stream("one"),
            Stream("two"),
        ),
    )
    machine = Collector(graph, "shared")
    sources = frozenset({"src"})
    assert machine.receive(Collect(2, "one", Back(5.0), sources, 100.0)) is None
    answer = machine.receive(Collect(2, "two", Back(8.0), sources, 100.0))
    assert answer == (Back(8.0), [("src", Collect(2, "shared", Back(10.0), sources, 100.0))])
    assert collect_points(graph, 2, 100.0, 0.0, sources)["src"] == Back(10.0)


def test_t16_an_operator_says_what_its_windows_hold() -> None:
    machines = Machines(Query("q", accidents(), "fo", lambda place: BEFORE, 4.0))
    machines.switch(BEFORE, 10.0)
    machines.see(seen(f"s{n}", "speed", float(n), 25.0) for n in range(4, 14, 2))
    machines.arrive(13.0)
    acc, speed = (machines.operators[name].observed() for name in ("acc", "speed"))
    assert acc.oldest["lane"] is None and speed.oldest == {"speeds": 4.0}
    assert speed.gaps == {"speeds": 2.0} and speed.reach == {"c": 4.0}
    found = collect_points(
        accidents(), 2, 13.0, 4.0, frozenset({"speeds"}), "basic", {"acc": acc}, aware=True
    )
    assert found["speed"] == Back()  # no lane change: no slow vehicles of before are needed


def test_basic_points_are_those_of_lemma_1() -> None:
    graph = accidents()
    everything = frozenset({"speeds", "lanes"})
    found = collect_points(graph, 2, 100.0, 4.0, everything)
    assert {name: 100.0 - back.seconds for name, back in found.items()} == graph.points(100.0, 4.0)


def test_windows_into_the_past_need_what_they_reached_lately() -> None:
    operator = Operator(
        "o", (Window("w", "s", Count(2), ByEvents(-1)),), RestrictionWindow(10.0), Recorded(), Full("w")
    )
    assert additional(operator, "s", "time_span", Observed()) == Back(10.0)
    assert additional(operator, "s", "time_span", Observed(reach={"w": 3.0})) == Back(3.0)
