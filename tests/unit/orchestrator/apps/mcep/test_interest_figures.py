"""Metrics and the live view of moving interests, from rows and records of a run whose truth is known."""

from types import SimpleNamespace
from typing import Any

import pytest

from node_agent.apps.mcep.telemetry import (
    ENDLESS_NS,
    InterestBroker,
    InterestStalled,
    InterestSwitched,
    SensorRead,
    SituationFound,
)
from node_agent.telemetry.kinds import tag_of
from orchestrator.apps.mcep.analytics import drawing
from orchestrator.apps.mcep.analytics.drawing import MOST_POINTS, operators_by_broker, thinned
from orchestrator.apps.mcep.analytics.metrics import METRICS, notes, values
from orchestrator.apps.mcep.analytics.moving import METRICS as MOVING
from orchestrator.apps.mcep.live import InterestView
from orchestrator.apps.mcep.rehearsal import Rehearsal
from tests.unit.orchestrator.apps.mcep.town import document, planned

pytestmark = pytest.mark.unit

PLAN = planned(document()).recorded
EXPECTED = Rehearsal(PLAN).play()["near"]
S = 1_000_000_000


def rows(delay_s: float = 2.0) -> list[dict[str, Any]]:
    return [
        {
            "query": "near",
            "number": number,
            "type": each.type,
            "at_ns": each.at_ns,
            "epoch": each.epoch,
            "t_ns": round((each.due_s + delay_s) * S),
            "ancestors": list(each.ancestors),
            "x": float(number),
            "y": 2.0 * number,
        }
        for number, each in enumerate(EXPECTED, 1)
    ]


def figures(found: list[dict[str, Any]], reason: str = "", **shared: list[dict[str, Any]]) -> Any:
    run = SimpleNamespace(manifest={"moving_from_ns": 0})
    subject: Any = SimpleNamespace(app=SimpleNamespace(plan=PLAN), run=run, zero_ns=0, ended_ns=45 * S)
    starts = {each.epoch: each.due_s for each in reversed(EXPECTED)}
    switches = [{"query": "near", "epoch": epoch, "start_ns": 0} for epoch in starts]
    broker = {"node": "b1", "boot": 1, "streamed": 7, "skipped": 2, "processed": 3}
    return values(
        subject,
        {
            "sensor_events": [{}] * 9,
            "interest_switches": switches,
            "situations": found,
            "interest_brokers": [broker, {**broker, "streamed": 9}],
            "interest_clients": [{"node": "car1", "boot": 1, "handovers": 4}],
            "interest_links": [{"node": "car1", "boot": 1, "neighbour": "b1", "bytes": 100}],
            "interest_stalls": [{"reason": reason}],
            "selection_managers": [],
            "shared_selections": [],
            **shared,
        },
    )


def test_a_run_that_delivers_all_misses_nothing() -> None:
    found = figures(rows())
    assert {metric.name for metric in METRICS} | {"situation_delays", "situation_places", "sharing"} == set(
        found
    )
    assert found["situations"] == len(EXPECTED) > 20 and found["interest_streamed"] == 9
    assert found["situations_missing"] == found["situations_surplus"] == found["situations_out_of_order"] == 0
    assert found["queries"]["near"]["expected"] == len(EXPECTED) and found["interest_stalls"] == 0
    assert notes({}, [found]) == []


def test_what_is_missing_too_much_or_out_of_order_is_counted() -> None:
    every = rows()
    assert figures(every[1:])["situations_missing"] == 1
    assert figures([*every, {**every[0], "number": 1000}])["situations_surplus"] == 1
    wrong = {**every[-1], "ancestors": ["car9#1"]}
    assert figures([*every[:-1], wrong])["situations_surplus"] == 1
    assert figures([{**each, "number": -each["number"]} for each in every])["situations_out_of_order"] > 0
    stalled = figures(every, "waits for car2")
    assert stalled["interest_stalls"] == 1 and "stalled" in notes({}, [stalled])[0]


def test_shared_selections_are_summed_up_by_manager_and_by_pair() -> None:
    """The newest row of each manager and of each pair counts."""
    of = {"node": "b1", "manager": "mean"}
    more = {"comparisons": 600, "rounds": 3, "waited_ns": 50 * S, "disparity": None}
    pair = {**of, "by": "a", "query": "b"}
    managers = [
        {**of, "t_ns": 2, "selections": 100, "processed": 40, **more},
        {**of, "t_ns": 1, "selections": 10, "processed": 10, **more},
        {**of, "node": "b2", "manager": "max", "t_ns": 1, "selections": 100, "processed": 60, **more},
    ]
    pairs = [
        {**pair, "t_ns": 1, "selections": 10, "precision": 0.1, "recall": 0.1},
        {**pair, "t_ns": 2, "selections": 60, "precision": 0.9, "recall": 0.8},
        {**pair, "manager": "max", "t_ns": 1, "selections": 40, "precision": 0.4, "recall": 0.3},
    ]
    results = [{**each, "precision": 0.5, "recall": None} for each in rows()]
    found = figures(results, selection_managers=managers, shared_selections=pairs)
    assert (found["interest_decided"], found["interest_shared"], found["interest_saved"]) == (200, 100, 0.5)
    assert (found["interest_comparisons"], found["interest_wait_mean_s"]) == (12.0, 0.5)
    assert (found["interest_precision"], found["interest_recall"]) == (0.5, None)
    assert found["interest_disparity"] is None and found["managers"]["mean"]["saved"] == 0.6
    assert found["shared_selections"] == {"a → b": {"selections": 100, "precision": 0.7, "recall": 0.6}}
    assert found["sharing"] == {"a": {"b": 100}}


def told(kind: type[Any], **fields: Any) -> Any:
    return SimpleNamespace(kind=tag_of(kind), **fields)


def test_the_view_tells_delays_regions_and_stalls() -> None:
    view = InterestView("interest", PLAN)
    head = view.head()
    assert head["situations"][0]["focal"] == "car1" and head["situations"][0]["shape"] == "circle"
    assert [each["broker"] for each in head["areas"]] == head["brokers"] == ["b1", "b2"]
    assert head["areas"][1]["corners"] == [[200.0, 0.0], [400.0, 0.0], [400.0, 200.0], [200.0, 200.0]]
    place = {"x": 1.0, "y": 2.0, "radius": 150.0}
    list(view.take("car1", 11.0, told(SensorRead, at_ns=S)))
    list(view.take("b1", 12.0, told(InterestSwitched, query="near", epoch=1, start_ns=S, **place)))
    found = told(SituationFound, query="near", epoch=1, at_ns=2 * S, ancestors=("car1#1",))
    list(view.take("car1", 13.5, found))
    (stall,) = view.take("b2", 14.0, told(InterestStalled, reason="waits for the word of car2"))
    assert stall.value["text"] == "interest: b2: waits for the word of car2"
    changes = {change.channel: change.value for change in view.tick(15.0)}
    assert changes["situation"] == {"count": 1, "delay": 1.5, "worst": 1.5, "last": ["car1#1"]}
    assert changes["region"]["radius"] == 150.0 and list(view.tick(16.0)) == []


def test_a_figure_of_many_situations_keeps_the_extremes() -> None:
    points = [[number / 100, float(number % 97)] for number in range(50_000)]
    drawn = thinned(points)
    assert len(drawn) <= MOST_POINTS and thinned(points[:MOST_POINTS]) == points[:MOST_POINTS]
    assert min(late for _, late in drawn) == 0 and max(late for _, late in drawn) == 96
    assert {int(at) // 50 for at, _ in drawn} == set(range(10))


def test_when_all_have_left_everything_has_arrived() -> None:
    view = InterestView("interest", PLAN)
    kept = {"stored": 0, "waiting": 0, "streamed": 7}
    list(view.take("b1", 1.0, told(InterestBroker, arrived_ns=1_500_000_000, **kept)))
    list(view.take("b2", 1.0, told(InterestBroker, arrived_ns=ENDLESS_NS, **kept)))
    assert [change.value["arrived"] for change in view.tick(2.0)] == [1.5, None]


def test_tables_have_no_columns_of_what_the_run_does_not_do() -> None:
    nothing = {each.name: {"mean": None, "sd": None} for each in (*METRICS, *MOVING)}
    some = {**nothing, "migrations": {"mean": 2.0, "sd": None}}
    every = [each for each in (*METRICS, *MOVING) if each.console or each.report]
    known = {each.name for each in every if each.is_known([{"metrics": nothing}])}
    assert {"situations", "situation_delay_mean_s"} <= known, "that there is none is worth knowing"
    assert not known & {"migrations", "stream_bdp", "interest_saved"}
    more = {each.name for each in every if each.is_known([{"metrics": nothing}, {"metrics": some}])}
    assert more - known == {"migrations"}


def test_a_place_is_drawn_once() -> None:
    every = rows()
    twice = [*every, *({**each, "number": 1000 + each["number"], "epoch": 99} for each in every)]
    once, again = (figures(each)["situation_places"]["near"] for each in (every, twice))
    assert once == again and 0 < len(once) <= len(every)


def test_the_legend_hides_no_operator(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Any] = []

    def keep(figure: Any, *texts: str) -> None:
        figure.canvas.draw()
        (axes,) = figure.axes
        drawn.append((axes.get_legend().get_window_extent().y0, axes.get_window_extent().y1))

    monkeypatch.setattr(drawing, "finish", keep)
    places = {f"near: {name}": [[0.0, 0.0], [9.0, 8.0]] for name in ("averaging", "slowing", "accident")}
    series = {"operator_places": places, "operator_brokers": [f"b{n}" for n in range(9)]}
    cell: Any = SimpleNamespace(runs=[(None, {"series": series})], label="")
    operators_by_broker([cell])
    ((legend, top),) = drawn
    assert legend >= top


def test_short_stops_are_told_in_milliseconds() -> None:
    """Operators that move live stand still for some of them."""
    (stopped,) = (each for each in MOVING if each.name == "migration_stopped_mean_s")
    assert all(each is not None and "ms" in (each.short or "") for each in (stopped.console, stopped.report))
