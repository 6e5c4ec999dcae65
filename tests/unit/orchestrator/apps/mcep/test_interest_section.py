"""From the section ``interest`` to a plan, and all that can be wrong on the way."""

from typing import Any

import msgspec
import pytest
from pydantic import ValidationError

from node_agent.apps.mcep.config import areas_of, drive_of, problems, query_of, readings_of, settings_problems
from node_agent.apps.mcep.geometry import Box, Point
from orchestrator.apps.mcep.application import INTEREST
from orchestrator.apps.mcep.plan import recorded_in
from orchestrator.planning.semantics import plan_run
from orchestrator.planning.sweep import cells
from orchestrator.spec.experiment import Experiment
from orchestrator.spec.translate import findings_of
from tests.unit.orchestrator.apps.mcep.town import QUERY, document, planned

pytestmark = pytest.mark.unit


def query(**changes: Any) -> dict[str, Any]:
    return {"queries": {"near": {**QUERY, **changes}}}


def misplanned(interest: dict[str, Any]) -> list[tuple[str, str]]:
    run, findings = plan_run(Experiment.model_validate(document(interest)))
    assert run is None
    return [(".".join(map(str, each.at)), each.message) for each in findings]


def misread(interest: dict[str, Any]) -> list[str]:
    whole = document(interest)
    with pytest.raises(ValidationError) as caught:
        Experiment.model_validate(whole)
    return [each.message for each in findings_of(caught.value, Experiment, whole)]


def test_each_node_gets_its_part_and_the_manifest_all_of_it() -> None:
    plan = planned(document())
    assert plan.nodes() == ("b1", "b2", "car1", "car2", "car3", "car4")
    assert all(problems(plan.agent_config(node), node) == [] for node in plan.nodes())
    assert plan.agent_config("b1").drive == "" and plan.agent_config("car1").drive.startswith("0,")
    settings = plan.recorded.settings
    assert settings.areas == {"b1": (0, 0, 200, 200), "b2": (200, 0, 400, 200)}
    assert settings.ttl == 10.0 and settings.until == 30.0
    assert recorded_in(plan.record()) == plan.recorded
    assert recorded_in({}) is None and INTEREST.examiner({}) is None and INTEREST.examiner(plan.record())
    shown = "\n".join(map(str, plan.shown()))
    assert "average_speed within 150 m of car1" in shown and "speed → averaging on b" in shown
    assert "near around car1" in plan.graph("svg") and "averaging" in plan.graph("mmd")
    assert plan.document()["brokers"]["b1"] == [0, 0, 200, 200]


def test_clients_tell_only_what_some_query_wants() -> None:
    recorded = planned(document()).recorded
    lanes = "0,10,10,5,street_0\n5,20,10,5,street_1\n9,30,10,5,street_0"
    other = msgspec.structs.replace(recorded, drives={**recorded.drives, "car1": lanes})
    told = list(readings_of(other.config("car1")))
    assert {each.type for each in told} == {"speed", ""}
    assert [each.t for each in told if each.is_silent] == [5.0, 9.0], "only where it is"
    assert {each.type for each in drive_of(lanes).readings(1.0, 9.5)} == {"speed", "lane"}


def test_a_region_is_a_circle_or_a_square() -> None:
    square = {key: value for key, value in QUERY.items() if key != "radius"}
    plan = planned(document({"queries": {"near": {**square, "edge": "300 m"}}}))
    (config,) = plan.recorded.settings.queries
    assert query_of(config).interest(Point(200, 100)) == Box(50, -50, 350, 250)
    assert "in a square of 300 m around car1" in "\n".join(map(str, plan.shown()))
    drawn = plan.graph("svg")
    assert (drawn.count("<polygon"), drawn.count("<rect")) == (2, 1), "what two brokers serve, and the square"
    assert "neither radius nor edge is given" in misread({"queries": {"near": square}})[0]
    assert "radius and edge are given" in misread(query(edge="9 m"))[0]


def test_every_error_is_told_at_once() -> None:
    found = misplanned({"brokers": ["b1", "b4"], **query(focal="b1", home="car2", hosts={"sum": "b1"})})
    assert [place for place, _ in found] == [
        "interest.brokers.b4",
        "interest.queries.near.focal",
        "interest.queries.near.hosts.sum",
        "interest.queries.near.home",
    ]


@pytest.mark.parametrize(
    ("interest", "place", "words"),
    [
        ({"keep": "6s"}, "queries.near", "a switch needs 10 s of them"),
        ({"clients": ["b1", "car1"]}, "clients.0", "is a broker"),
        ({"stop": "99s"}, "stop", "leave after 99 s, and the run ends after 45 s"),
        ({"cameras": {"nodes": ["car2"]}}, "cameras.nodes.0", "car2 moves, and cameras stand"),
        (query(predict={"ahead": "2s"}), "queries.near.suppression", "for one graph that moves"),
        (query(situation="accident", parameters={}), "queries.near.situation", "have no lanes"),
        (
            query(completeness="strong", suppression=False),
            "queries.near.completeness",
            "share the graph of a region",
        ),
        (query(completeness="best_effort"), "queries.near", "suppression needs complete epochs"),
        (
            query(switch={"quality": {"precision": "90%", "recall": "90%"}}),
            "queries.near.switch.quality",
            "counted on one broker only, and here are 2",
        ),
        (
            {
                "brokers": {
                    "b1": {"x": [0, 200], "y": [0, 200]},
                    "b2": {"x": [250, 400], "y": [0, 200]},
                }
            },
            "brokers",
            "no broker serves the area from (200, 0) to (250, 200) m",
        ),
    ],
)
def test_what_cannot_work_is_one_clear_error(interest: dict[str, Any], place: str, words: str) -> None:
    ((at, message),) = misplanned(interest)
    assert at == f"interest.{place}".rstrip(".") and words in message


@pytest.mark.parametrize(
    ("interest", "words"),
    [
        (query(situation="acident"), "there is no situation"),
        (query(parameters={"reading": 3}), 'average_speed has no parameter "reading"'),
        (query(parameters={"readings": 1.5}), "not a whole number of events"),
        (query(parameters={"readings": 0}), "must be at least 1 events"),
        (query(parameters={"within": "5 m/s"}), "is not a duration"),
        (query(switch="5s"), '"5s": expected a mapping'),
        ({"queries": {}}, "is empty"),
        (query(switch={"after": "5s", "distance": "9 m"}), "a query has one condition"),
        ({"brokers": ["b1", "b1"]}, "listed twice"),
        ({"brokers": {"b1": {"x": [0, 400], "y": [200, 0]}}}, "the area is empty"),
    ],
)
def test_what_cannot_be_read_is_one_clear_error(interest: dict[str, Any], words: str) -> None:
    (message,) = misread(interest)
    assert words in message


def test_parameters_have_units_and_the_plan_has_all_of_them() -> None:
    ahead = {
        "situation": "moving_speed",
        "parameters": {"above": "36 km/h", "readings": 3},
        "suppression": False,
    }
    ahead |= {"completeness": "strong", "cells": "50 m"}
    given = {**ahead, "parameters": {"above": 10, "readings": 3, "within": "25s"}}
    queries = {"near": {**QUERY, **ahead}, "far": {**QUERY, **given, "focal": "car2"}}
    first, second = planned(document({"queries": queries})).recorded.settings.queries
    assert first.parameters == {"readings": 3, "above": 10.0, "within": 25.0}
    assert first.asks == second.asks, "whether a default is written or not"
    shown = "\n".join(map(str, planned(document({"queries": queries})).shown()))
    assert "moving_speed: readings 3, above 10 m/s, within 25 s" in shown


def test_errors_say_how_to_write_it() -> None:
    whole = document({"queries": {"near": {**QUERY, "switch": "5s"}}, "brokers": "b1"})
    with pytest.raises(ValidationError) as caught:
        Experiment.model_validate(whole)
    hints = {str(each.at[-1]): each.hint for each in findings_of(caught.value, Experiment, whole)}
    assert hints["switch"] == "for example switch: {after: 5s}"
    assert hints["brokers"] == "for example brokers: [b1, b2, b3, b4]"


TRIANGLES = {
    "b1": {"polygon": [["0 m", "0 m"], ["400 m", "0 m"], ["400 m", "200 m"]]},
    "b2": {"polygon": [["0 m", "0 m"], ["400 m", "200 m"], ["0 m", "200 m"]]},
}


def test_brokers_can_have_polygons() -> None:
    plan = planned(document({"brokers": TRIANGLES}))
    settings = plan.recorded.settings
    assert list(settings.areas["b1"]) == [0, 0, 400, 200]
    assert list(settings.polygons["b1"][2]) == [400, 200]
    found = areas_of(settings)
    assert [found.leaf(Point(300, 20)), found.leaf(Point(20, 100))] == ["b1", "b2"]
    assert recorded_in(plan.record()) == plan.recorded
    assert all(problems(plan.agent_config(node), node) == [] for node in plan.nodes())
    shown = "\n".join(map(str, plan.shown()))
    assert "b1: the polygon (0, 0), (400, 0), (400, 200) m" in shown
    assert "<polygon" in plan.graph("svg") and plan.document()["polygons"]["b2"][1] == [400, 200]
    strange = msgspec.structs.replace(settings, polygons={"car1": settings.polygons["b1"]})
    assert settings_problems(strange) == ["car1 has a polygon, and is no broker"]


@pytest.mark.parametrize(
    ("brokers", "words"),
    [
        ({"b1": TRIANGLES["b1"]}, "no broker serves the area at"),
        ({**TRIANGLES, "b3": {"x": [0, 50], "y": [0, 50]}}, "both b2 and b3 serve the area at"),
        ({**TRIANGLES, "b3": None}, "b3 has no area, and others have one"),
    ],
)
def test_brokers_that_do_not_cover_the_area_are_one_error(brokers: dict[str, Any], words: str) -> None:
    ((at, message),) = misplanned({"brokers": brokers})
    assert at == "interest.brokers" and words in message


@pytest.mark.parametrize(
    ("area", "words"),
    [
        ({"polygon": [["0 m", "0 m"], ["4 m", "0 m"]]}, "is no polygon: it has 3 to 400 corners"),
        ({"polygon": [["0 m", "0 m"], ["4 m"], ["1 m", "1 m"]]}, "is no corner"),
        ({"x": [0, 1], "y": [0, 1], "polygon": TRIANGLES["b1"]["polygon"]}, "an area has one form"),
        ({"x": [0, 1]}, "y is missing"),
    ],
)
def test_an_area_of_no_form_is_one_error(area: dict[str, Any], words: str) -> None:
    (message,) = misread({"brokers": {"b1": area, "b2": {"x": [0, 1], "y": [0, 1]}}})
    assert words in message


def test_sweeps_vary_what_a_query_says() -> None:
    swept = document(sweep={"interest.queries.near.radius": ["100 m", "200 m"], "seed": [1, 2]})
    assert len(cells(Experiment.model_validate(swept))) == 4
