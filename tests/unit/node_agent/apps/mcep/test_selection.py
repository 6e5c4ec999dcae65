"""Windows, dependencies, predicates and consumption: which events are selected together (T-01, T-05 to
T-08)."""

import pytest

from node_agent.apps.mcep.graph import OperatorGraph, Source, Stream
from node_agent.apps.mcep.windows import (
    AtLeast,
    Both,
    ByEvents,
    ByTime,
    Consume,
    Count,
    Dependency,
    Exactly,
    Full,
    Open,
    Operator,
    Output,
    RestrictionWindow,
    Selection,
    Span,
    Stay,
    Step,
    Window,
    filter_operator,
)
from tests.unit.node_agent.apps.mcep.driving import Recorded, all_at_once, seen

pytestmark = pytest.mark.unit

BOTH = Both((AtLeast("a", 1), AtLeast("b", 1)))


def test_t01_two_beginnings_give_two_maximum_covering_sequences() -> None:
    events = [
        seen("e1", "A", 1, value=5), seen("e2", "A", 2, value=8), seen("e3", "B", 4, value=3),
        seen("e4", "A", 8, value=5), seen("e5", "B", 9, value=7),
    ]  # fmt: skip

    def total(selection: Selection) -> list[Output]:
        amount = sum(int(each.attributes["value"]) for each in selection.events)
        return [Output("sum", {"sum": amount})] if amount > 10 else []

    def run(begin: float) -> tuple[list[set[str]], list[tuple[int, float]]]:
        correlate = Recorded(total)
        windows = (
            Window("a", "A", Count(1), ByEvents(1), "oldest"),
            Window("b", "B", Count(1), ByEvents(1), "oldest"),
        )
        operator = Operator(
            "sum", windows, RestrictionWindow(4.0), correlate, BOTH, consumption=Consume("all")
        )
        made = all_at_once(operator, events, begin, 9.5)
        return correlate.seen, [(int(each.attributes["sum"]), each.t) for each in made if each.t >= 3]

    assert run(begin=3.0) == ([{"e1", "e3"}, {"e4", "e5"}], [(12, 9)])  # start 5 – 2 s of history
    later = [each for each in events if each.source != "e1"]
    events = later
    assert run(begin=3.0) == ([{"e2", "e3"}, {"e4", "e5"}], [(11, 4), (12, 9)])


def test_t05_a_sliding_window_keeps_what_it_needs() -> None:
    correlate = Recorded()
    operator = Operator("o", (Window("w", "s", Count(3)),), RestrictionWindow(10.0), correlate, Full("w"))
    made = all_at_once(operator, [seen(f"e{n}", "s", n) for n in (0, 1, 2, 4)], -1.0, 5.0)
    assert correlate.seen == [{"e0", "e1", "e2"}, {"e1", "e2", "e4"}]
    ancestors = {name for name, _ in made[0].provenance}
    assert ancestors == {"e0", "e1", "e2"}  # e9 depends on them
    e9 = made[0]._replace(type="made", source="e9")
    above = Operator("p", (Window("w", "made", Count(1)),), RestrictionWindow(10.0), Recorded(), Full("w"))
    (of_s4,) = all_at_once(above, [e9], -1.0, 5.0)
    assert {name for name, _ in of_s4.provenance} == ancestors  # and so does what e9 is selected for


def test_t06_restriction_windows_say_how_far_back_streams_begin() -> None:
    correlate = Recorded()
    slow = filter_operator("slow", "speed", lambda each: True, "slow", length=1.0)
    newest = Operator("inc", (Window("w", "slow", Count(3)),), RestrictionWindow(9.0), correlate, Full("w"))
    graph = OperatorGraph(
        (Source("speed", "speed"),),
        (slow, newest),
        (Stream("speed", "slow"), Stream("slow", "inc"), Stream("inc")),
    )
    assert graph.additional_time("speed") == 10.0
    assert graph.points(start=12.0, history=2.0) == {"speed": 0.0, "slow": 1.0, "inc": 10.0}
    made = all_at_once(newest, [seen(f"e{t}", "slow", t) for t in (5, 8, 10, 11)], 10.0, 12.0)
    assert correlate.seen == [{"e5", "e8", "e10"}, {"e8", "e10", "e11"}]
    assert [each.t for each in made] == [10, 11]


def test_t07_a_dependent_window_gives_way() -> None:
    events = [
        *(seen(name, "A", t) for name, t in (("e2", 1), ("e3", 3), ("e4", 6))),
        *(seen(name, "B", t) for name, t in (("e7", 2), ("e8", 5), ("e9", 8))),
    ]
    correlate = Recorded()
    operator = Operator(
        "seq",
        (
            Window("a", "A", Count(1), ByEvents(2), "oldest"),
            Window("b", "B", Count(1), ByEvents(1), "oldest"),
        ),
        RestrictionWindow(10.0, ByTime(10.0)),
        correlate,
        BOTH,
        (Dependency("a", "end", "<", "b", "start"),),
    )
    all_at_once(operator, events, 9.0, 10.0)
    assert correlate.seen == [{"e2", "e7"}, {"e3", "e8"}, {"e4", "e9"}]


def test_t08_no_step_while_a_window_is_empty() -> None:
    correlate = Recorded()
    windows = (Window("a", "A", Count(1)), Window("b", "B", Count(1)))
    operator = Operator("both", windows, RestrictionWindow(10.0), correlate, BOTH)
    all_at_once(operator, [seen("a1", "A", 1), seen("a2", "A", 2), seen("b1", "B", 3)], 0.0, 5.0)
    assert correlate.seen == [{"a2", "b1"}]


def test_negation_speaks_when_nothing_came() -> None:
    operator = Operator(
        "quiet",
        (Window("w", "s", Span(2.0)),),
        RestrictionWindow(2.0, ByTime(2.0)),
        Recorded(),
        Exactly("w", 0),
    )
    made = all_at_once(operator, [seen("e1", "s", 1.0), seen("e2", "s", 7.0)], 2.0, 9.0)
    assert [each.t for each in made] == [4.0, 6.0]


def test_an_open_window_ends_where_its_operator_says() -> None:
    correlate = Recorded()
    operator = Operator(
        "run",
        (Window("w", "s", Open(), ByEvents(1), "oldest"),),
        RestrictionWindow(10.0, ByTime(10.0)),
        correlate,
        AtLeast("w", 1),
        consumption=Consume("all"),
        ends=lambda events: bool(events[-1].attributes["last"]),
    )
    names = {"e1": False, "e2": True, "e3": False, "e4": False}
    all_at_once(
        operator, [seen(name, "s", n, last=last) for n, (name, last) in enumerate(names.items())], 9.0, 10.0
    )
    assert correlate.seen == [{"e1", "e2"}, {"e3", "e4"}]


def test_windows_look_into_the_past_and_outputs_stay_in_order() -> None:
    correlate = Recorded()
    operator = Operator(
        "past",
        (Window("w", "s", Count(2), ByEvents(-1)),),
        RestrictionWindow(9.0, ByEvents(3)),
        correlate,
        Full("w"),
    )
    made = all_at_once(operator, [seen(f"e{n}", "s", n) for n in range(1, 7)], 0.0, 9.0)
    assert correlate.seen[:2] == [{"e2", "e3"}, {"e1", "e2"}]
    assert [each.key for each in made] == sorted(each.key for each in made)


def test_an_operator_that_is_finished_stops_in_this_restriction_window() -> None:
    names: list[str] = []

    def first_only(selection: Selection) -> Step:
        names.append(selection.events[0].source)
        return Step(finished=True)

    operator = Operator(
        "first",
        (Window("w", "s", Count(1), ByEvents(1), "oldest"),),
        RestrictionWindow(4.0, ByTime(4.0)),
        first_only,
        AtLeast("w", 1),
    )
    all_at_once(operator, [seen(f"e{n}", "s", n) for n in range(8)], 3.5, 8.0)
    assert names == ["e0", "e4"]


def test_a_window_that_stays_is_selected_once() -> None:
    correlate = Recorded()
    operator = Operator("o", (Window("w", "s", Span(1.0), Stay()),), RestrictionWindow(2.0), correlate)
    all_at_once(operator, [seen("e1", "s", 1.0), seen("e2", "s", 1.5)], 0.5, 3.0)
    assert correlate.seen == [set(), {"e1"}, {"e1", "e2"}]
