"""``predict`` and ``completeness: strong`` of a query in an experiment file: plan, errors, and whole runs."""

import json
from math import hypot
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pydantic import ValidationError

from node_agent.apps.mcep.config import QueryConfig, deployment_of, problems
from node_agent.apps.mcep.geometry import Circle, Point
from node_agent.apps.mcep.model import Quality
from node_agent.telemetry.segments import read_records
from orchestrator.planning.semantics import plan_run
from orchestrator.runs.run_directory import RunDirectory
from orchestrator.spec.dump import to_yaml
from orchestrator.spec.experiment import Experiment
from orchestrator.spec.translate import findings_of
from tests.unit.orchestrator.apps.mcep.town import BROKERS, CARS, QUERY, document, planned
from tests.unit.rove_process import RUN_ID, rove, run_under_test

pytestmark = [pytest.mark.unit, pytest.mark.timeout(300)]

PLAIN = {**QUERY, "suppression": False, "switch": {"after": "4s"}}
PREDICTED = {
    **PLAIN,
    "predict": {"ahead": "3s", "route": "known", "least": {"precision": 0.5, "recall": 0.5}},
}
STRONG = {
    **PLAIN,
    "completeness": "strong",
    "cells": "200 m",
    "radius": "100 m",
    "switch": {"distance": "1 m"},
}


def queries(**named: dict[str, Any]) -> dict[str, Any]:
    return {"queries": named}


def configs(interest: dict[str, Any]) -> tuple[QueryConfig, ...]:
    return planned(document(interest)).recorded.settings.queries


def misplanned(interest: dict[str, Any]) -> list[str]:
    run, findings = plan_run(Experiment.model_validate(document(interest)))
    assert run is None
    return [f"{'.'.join(map(str, each.at))}: {each.message}" for each in findings]


def test_agents_are_given_prediction_as_it_is_written() -> None:
    (plain,) = configs(queries(near=PREDICTED | {"predict": {"ahead": "3s"}}))
    assert plain.foretold is not None and plain.foretold.route == () and plain.foretold.budget is None
    said = {
        "ahead": "2s",
        "eagerness": 3,
        "per_event": "10 ms",
        "profile": [[0.1, "500 ms"], [0.5, "4s"]],
        "route": [["0s", "0 m", "0 m"], ["60s", "300 m", "0 m"]],
        "places": 5,
        "spread": "40 m",
        "budget": 6,
        "prefer": "resource",
        "least": {"precision": "60%"},
        "alike": {"precision": "90%", "recall": "70%"},
        "look_back": "8s",
        "tolerance": "30 m",
    }
    plan = planned(document(queries(near={**PLAIN, "predict": said})))
    config = plan.agent_config("b1")
    assert problems(config, "b1") == []
    (deployed,) = deployment_of(config.settings).queries
    found = deployed.prediction
    assert found is not None and (found.eagerness, found.ahead, found.seconds_per_event) == (3, 2.0, 0.01)
    assert found.profile == ((0.1, 0.5), (0.5, 4.0)) and found.route[1] == (Point(300.0, 0.0), 60.0)
    assert (found.places, found.spread, found.budget, found.preference) == (5, 40.0, 6.0, "resource")
    assert (found.least, found.alike) == (Quality(0.6, 0.8), Quality(0.9, 0.7))
    assert (found.look_back, found.tolerance) == (8.0, 30.0)
    shown = "\n".join(map(str, plan.shown()))
    assert "prepares graphs for the next 3 switches" in shown and "within a budget of 6" in shown
    assert config.settings.ttl >= 10.0


def test_a_known_route_is_the_drive_itself() -> None:
    plan = planned(document(queries(near=PREDICTED)))
    (query,) = plan.recorded.settings.queries
    assert query.foretold is not None
    first, last = query.foretold.route[0], query.foretold.route[-1]
    drive = [line.split(",") for line in plan.recorded.drives["car1"].splitlines()]
    assert first[0] == float(drive[0][0]) and first[1] == pytest.approx(float(drive[0][1]), abs=0.01)
    assert last[0] == pytest.approx(float(drive[-1][0]), abs=1.0)


def test_a_node_refuses_prediction_out_of_bounds() -> None:
    (query,) = configs(queries(near=PREDICTED))
    for bad in ({"eagerness": 99}, {"places": 0}, {"route": [[0.0, 1e12, 0.0]]}, {"look_back": 0}):
        raw = msgspec.to_builtins(query)
        raw["foretold"] |= bad
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert(raw, QueryConfig)


def test_strong_queries_that_ask_for_the_same_share_home_and_graph() -> None:
    interest = queries(near={**STRONG, "home": "b2"}, far={**STRONG, "focal": "car2"})
    plan = planned(document(interest))
    one, other = plan.recorded.settings.queries
    assert one.home == other.home == "b2" and one.asks == other.asks
    (group,) = deployment_of(plan.recorded.settings).groups
    assert [each.name for each in group] == ["near", "far"]
    assert (
        group[0].query.interest(Point(250, 20))
        == group[1].query.interest(Point(399, 199))
        == Circle(300, 100, 100)
    )
    assert "shares graphs of the same region: near, far" in "\n".join(map(str, plan.shown()))


@pytest.mark.parametrize(
    ("interest", "words"),
    [
        (queries(near={**PLAIN, "completeness": "strong"}), "near.completeness: queries share the graph"),
        (queries(near={**PLAIN, "predict": {}}), "near.predict: how long history takes is counted on one"),
        (queries(near={**PREDICTED, "suppression": True}), "suppression is for one graph that moves"),
        (
            queries(near={**STRONG, "home": "b1"}, far={**STRONG, "focal": "car2", "home": "b2"}),
            "queries near and far both ask for average_speed",
        ),
    ],
)
def test_what_cannot_work_is_one_clear_error(interest: dict[str, Any], words: str) -> None:
    (found,) = misplanned(interest)
    assert words in found


@pytest.mark.parametrize(
    ("predict", "words"),
    [
        ({"ahead": "2s", "eagerness": 17}, "16"),
        ({"ahead": "2s", "places": 0}, "1"),
        ({"ahead": "2s", "places": 5}, "none of them is farther than 0 m away"),
        ({"ahead": "2s", "route": [["5s", 0, 0], ["5s", 1, 1]]}, "the times of a route must grow"),
        ({"ahead": "2s", "route": []}, "a route has 1 to 2000 places"),
        ({"ahead": "2s", "least": {"precision": "120%"}}, "120%"),
        ({"ahead": "-2s"}, "-2"),
        ({"ahead": "2s", "prefer": "cheapest"}, "cheapest"),
        ({"ahead": "2s", "budget": -1}, "-1"),
    ],
)
def test_what_cannot_be_read_is_one_clear_error(predict: dict[str, Any], words: str) -> None:
    whole = document(queries(near={**PLAIN, "predict": predict}))
    with pytest.raises(ValidationError) as caught:
        Experiment.model_validate(whole)
    (found,) = findings_of(caught.value, Experiment, whole)
    assert words in found.message


def records(run: RunDirectory, kind: str) -> list[dict[str, Any]]:
    every = (record for node in (*BROKERS, *CARS) for record in read_records(run.segments(node)))
    return [record for record in every if record["kind"] == kind]


def assert_consistent(run: RunDirectory) -> None:
    """No result is made of an event outside of its epoch's region."""
    regions = {(each["query"], each["epoch"]): each for each in records(run, "interest_switched")}
    places = {f"{each['node']}#{each['number']}": each for each in records(run, "sensor_read")}
    for found in records(run, "situation_found"):
        region = regions[found["query"], found["epoch"]]
        for name in found["ancestors"]:
            seen = places[name]
            assert hypot(seen["x"] - region["x"], seen["y"] - region["y"]) <= region["radius"] + 0.01


def ran(folder: Path, interest: dict[str, Any]) -> None:
    file = folder / "town.yaml"
    file.write_text(to_yaml(document(interest)))
    ended = rove(folder / "runs", "run", str(file), "--run-id", RUN_ID, "--no-analyze", timeout=200)
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_prepared_graphs_serve_switches_of_a_run_and_explain_says_so(tmp_path: Path) -> None:
    with run_under_test(tmp_path / "runs") as run:
        ran(tmp_path, queries(near=PREDICTED))
        how = [each["how"] for each in records(run, "interest_switched")]
        assert how[0] == "began" and how[-1] == "" and how.count("prepared") >= 3
        assert len(records(run, "situation_found")) > 20
        assert_consistent(run)
        listed = rove(tmp_path / "runs", "explain", RUN_ID, "--json", timeout=100)
        switches = json.loads(listed.stdout)["switches"]
        assert any("a graph that was prepared there serves it" in each["why"] for each in switches)


def test_strong_queries_of_a_run_get_the_same_where_their_regions_are_the_same(tmp_path: Path) -> None:
    interest = queries(near=STRONG, far={**STRONG, "focal": "car2"})
    with run_under_test(tmp_path / "runs") as run:
        ran(tmp_path, interest)
        switches = records(run, "interest_switched")
        assert any(each["how"] == "shared" for each in switches)
        assert_consistent(run)
        found = records(run, "situation_found")
        compared = 0
        for one in (each for each in switches if each["query"] == "near" and each["x"] is not None):
            for other in (each for each in switches if each["query"] == "far" and each["x"] == one["x"]):
                spans = [_span(switches, one), _span(switches, other)]
                since, until = max(each[0] for each in spans), min(each[1] for each in spans)
                got = [
                    [
                        (each["at_ns"], each["ancestors"])
                        for each in found
                        if each["query"] == of["query"]
                        and each["epoch"] == of["epoch"]
                        and since <= each["at_ns"] < until
                    ]
                    for of in (one, other)
                ]
                assert got[0] == got[1]
                compared += len(got[0])
        assert compared > 5


def _span(switches: list[dict[str, Any]], one: dict[str, Any]) -> tuple[int, int]:
    """When an epoch begins and ends, in the time of the drives."""
    following = (
        each for each in switches if each["query"] == one["query"] and each["epoch"] == one["epoch"] + 1
    )
    return one["start_ns"], next(following)["start_ns"]
