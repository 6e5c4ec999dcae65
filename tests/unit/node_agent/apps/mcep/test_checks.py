"""Queries without meaning get one clear sentence, and nothing is created."""

import math
from dataclasses import replace
from typing import Any

import pytest

from node_agent.apps.mcep.checks import check_graph, check_operator, check_query
from node_agent.apps.mcep.geometry import Box, Circle, Point, Polygon
from node_agent.apps.mcep.graph import OperatorGraph, Source, Stream
from node_agent.apps.mcep.model import McepError, Policy, Query
from node_agent.apps.mcep.windows import (
    AtLeast,
    ByEvents,
    ByTime,
    Count,
    Dependency,
    Full,
    Open,
    Operator,
    Partition,
    RestrictionWindow,
    Span,
    Window,
)
from tests.unit.node_agent.apps.mcep.driving import Recorded, one_operator

pytestmark = pytest.mark.unit

WINDOWS = tuple(Window(name, "s", Count(1)) for name in "abc")
GOOD = Operator("o", WINDOWS, RestrictionWindow(4.0), Recorded())


def after(window: str, other: str) -> Dependency:
    return Dependency(window, "start", ">", other, "end")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"dependencies": (after("a", "b"), after("b", "a"))},
            "operator o: its windows depend on each other in a circle: a → b → a",
        ),
        (
            {"dependencies": (after("a", "b"), after("a", "c"))},
            "operator o, window a: it depends on two windows; let it depend on one",
        ),
        ({"dependencies": (after("a", "x"),)}, "operator o: a dependency names an unknown window x"),
        ({"windows": ()}, "operator o: it needs windows, each with a name of its own"),
        (
            {"windows": (Window("a", "s", Count(0)),)},
            "operator o, window a: it must hold at least 1 event, not 0",
        ),
        (
            {"windows": (Window("a", "s", Span(math.inf)),)},
            "operator o, window a: it needs a length above 0 s, not inf",
        ),
        (
            {"windows": (Window("a", "s", Open()),)},
            "operator o, window a: an open window begins at the oldest event, and the operator must "
            "say where it ends",
        ),
        (
            {"windows": (Window("a", "s", Count(1), ByTime(1.0)),)},
            "operator o, window a: only a window with a span can shift by time",
        ),
        (
            {"windows": (Window("a", "s", Count(1), ByEvents(0)),)},
            "operator o, window a: a shift by 0 goes nowhere; use Stay()",
        ),
        (
            {"restriction": RestrictionWindow(-1.0)},
            "operator o: the restriction window needs a length of 0 s or more, not -1.0",
        ),
        (
            {"restriction": RestrictionWindow(1.0, ByTime(-1.0))},
            "operator o: the restriction window must move forwards, not by -1.0",
        ),
        (
            {"restriction": RestrictionWindow(1.0, stream="x")},
            "operator o: its restriction window follows an unknown stream x",
        ),
        ({"when": AtLeast("x", 1)}, "operator o: its predicate names an unknown window x"),
        (
            {"windows": (Window("a", "s", Span(1.0)),), "when": Full("a")},
            "operator o: window a counts no events, so it is never full",
        ),
        (
            {"reuse": "local"},
            "operator o: it is declared local, but does not look at one event at a time; build it like "
            "filter_operator, or declare it independent",
        ),
        (
            {"partition": Partition("region")},
            "operator o: partitions by region need a cell size above 0 m, not 0.0",
        ),
        ({"partition": Partition("attribute")}, "operator o: partitions by attribute need its name"),
    ],
)
def test_an_operator_without_meaning(change: dict[str, Any], message: str) -> None:
    check_operator(GOOD)
    with pytest.raises(McepError) as caught:
        check_operator(replace(GOOD, **change))
    assert str(caught.value) == message


def operator(name: str, *streams: str, **more: Any) -> Operator:
    return Operator(
        name, tuple(Window(f"w{s}", s, Count(1)) for s in streams), RestrictionWindow(4.0), Recorded(), **more
    )


SOURCES = (Source("s", "s"),)


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (
            OperatorGraph(
                SOURCES,
                (operator("a", "s", "b"), operator("b", "a")),
                (Stream("s", "a"), Stream("b", "a"), Stream("a", "b"), Stream("b")),
            ),
            "the operators feed each other in a circle: a → b → a",
        ),
        (OperatorGraph(SOURCES, (operator("a", "s"),), (Stream("s", "a"),)), "no stream leads to 'consumer'"),
        (
            OperatorGraph(
                SOURCES,
                (operator("a", "s"), operator("b", "s")),
                (Stream("s", "a"), Stream("s", "b"), Stream("a")),
            ),
            "nothing takes the events of b: add a stream from it, or leave it out",
        ),
        (
            OperatorGraph(SOURCES, (operator("a", "s", "x"),), (Stream("s", "a"), Stream("a"))),
            "operator a has windows on s, x, but streams from s: each stream needs a window, and each "
            "window a stream",
        ),
        (
            OperatorGraph(SOURCES, (operator("s", "s"),), (Stream("s"),)),
            "'s' cannot name a source or operator: use one word, once, and not 'consumer'",
        ),
        (
            OperatorGraph(SOURCES, (operator("a", "s"),), (Stream("s", "a"), Stream("a"), Stream("a"))),
            "there are two streams between the same two; join their restrictions",
        ),
        (
            OperatorGraph(SOURCES, (operator("a", "s"),), (Stream("s", "a"), Stream("a", "b"), Stream("a"))),
            "a stream ends at b, which is no operator; the consumer is 'consumer'",
        ),
        (
            OperatorGraph(
                SOURCES,
                (operator("a", "s"), operator("b", "a", partition=Partition("source"))),
                (Stream("s", "a"), Stream("a", "b"), Stream("b")),
            ),
            "operator b is partitioned by source, but a before it is not and looks at several events "
            "at once: partition both alike, or by an attribute",
        ),
    ],
)
def test_a_graph_without_meaning(graph: OperatorGraph, message: str) -> None:
    with pytest.raises(McepError) as caught:
        check_graph(graph)
    assert str(caught.value) == message


def query(region: Any, history: float = 6.0, **policy: Any) -> Query:
    return Query("q", one_operator(GOOD), "fo", region, history, Policy(**policy))


def fails(place: Point) -> Box:
    raise ZeroDivisionError("no such place")


@pytest.mark.parametrize(
    ("region", "message"),
    [
        (fails, "the region function failed at (1, 2): ZeroDivisionError: no such place"),
        (lambda place: None, "a region is a Box, a Circle or a Polygon, not NoneType"),
        (lambda place: Circle(0, 0, math.nan), "a circle needs three finite numbers"),
        (lambda place: Circle(0, 0, -1), "a circle needs a radius above 0, not -1"),
        (lambda place: Box(1, 0, 0, 1), "a box must not end before it begins"),
        (lambda place: Polygon((Point(0, 0), Point(1, 1))), "a polygon needs 3 to 1000 corners"),
        (
            lambda place: Polygon((Point(0, math.inf),) * 3),
            "the corners of a polygon are points with finite numbers",
        ),
    ],
)
def test_a_region_function_that_fails(region: Any, message: str) -> None:
    with pytest.raises(McepError) as caught:
        query(region).interest(Point(1, 2))
    assert str(caught.value).startswith("query q: ") and str(caught.value).endswith(message)


def test_events_must_be_kept_long_enough() -> None:
    check_query(query(fails), 10.0)
    with pytest.raises(McepError) as caught:
        check_query(query(fails), {"s": 9.0})
    assert str(caught.value) == (
        "query q: events of s are kept for 9 s, but a switch needs 10 s of them: 6 s of history "
        "and 4 s for the "
        "operators' restriction windows; keep them longer, or ask for less history"
    )
    with pytest.raises(McepError, match="history must be 0 s or more, not nan"):
        check_query(query(fails, math.nan), 10.0)


def test_suppression_needs_complete_epochs() -> None:
    with pytest.raises(McepError, match="suppression needs complete epochs"):
        check_query(query(fails, completeness="best_effort", suppression=True), 10.0)
