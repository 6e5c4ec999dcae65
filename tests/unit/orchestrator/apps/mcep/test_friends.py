"""The friend finder: cameras tell faces, and a query that follows a driver recognises friends."""

import json
from pathlib import Path
from typing import Any

import pytest

from node_agent.apps.mcep.config import deployment_of, drive_of, query_of, readings_of
from node_agent.apps.mcep.faces import NUMBERS, features_of, features_text, nearest
from node_agent.apps.mcep.geometry import Point, contains
from node_agent.apps.mcep.sensing import Drive, Sample
from node_agent.telemetry.segments import read_records
from orchestrator.apps.mcep.cameras import in_view
from orchestrator.apps.mcep.plan import InterestPlan, recorded_in
from orchestrator.apps.mcep.rehearsal import Rehearsal
from orchestrator.apps.mcep.stage import Stage
from orchestrator.planning.semantics import plan_run
from orchestrator.spec.dump import to_yaml
from orchestrator.spec.experiment import Experiment
from tests.unit.rove_process import RUN_ID, rove, run_under_test, verdict

pytestmark = [pytest.mark.unit, pytest.mark.timeout(300)]

CAMERAS, PEOPLE = ("cam1", "cam2"), ("ann", "bob", "eve", "dan")
FRIENDS = ("bob", "dan")


def document(interest: dict[str, Any] | None = None, **query: Any) -> dict[str, Any]:
    topology = {
        "name": "streets",
        "nodes": ["b1", *CAMERAS, *PEOPLE],
        "area": "400 m x 200 m",
        "mobility": {
            "model": "stations",
            "at": {"b1": [200, 100], "cam1": [100, 100], "cam2": [300, 100]},
            "others": {"model": "random_waypoint", "speed": "15 m/s"},
        },
        "radio": {"model": "contacts", "rate": "2 Mb/s", "latency": "10 ms", "hubs": ["b1"]},
    }
    asked = {"situation": "friend", "friends": list(FRIENDS), "focal": "ann", "radius": "150 m"} | query
    settings = {
        "brokers": ["b1"],
        "cameras": {"nodes": list(CAMERAS), "view": "120 m"},
        "stop": "30s",
        "queries": {"friends": {"history": "5s", "switch": {"distance": "30 m"}, **asked}},
    } | (interest or {})
    common = {"name": "line", "topology": topology, "routing": "none", "backend": "sim", "duration": "40s"}
    return {**common, "interest": settings}


def planned(whole: dict[str, Any]) -> InterestPlan:
    run, findings = plan_run(Experiment.model_validate(whole))
    assert run is not None, findings
    plan = run.apps["interest"]
    assert isinstance(plan, InterestPlan)
    return plan


def misplanned(interest: dict[str, Any] | None = None, **query: Any) -> list[tuple[str, str]]:
    run, findings = plan_run(Experiment.model_validate(document(interest, **query)))
    assert run is None
    return [(".".join(map(str, each.at)), each.message) for each in findings]


def test_faces_are_alike_by_their_numbers() -> None:
    one, other = (tuple([value] * NUMBERS) for value in (0.0, 0.5))
    assert nearest(one, {"ann": [other], "bob": [one, other]}) == ("bob", 0.0)
    assert nearest(one, {}) is None
    assert features_of(features_text(bytes(4 * NUMBERS))) == one
    assert features_of("short") is None and features_of(7) is None
    assert features_of(features_text(b"\xff" * 4 * NUMBERS)) is None, "not a number"


def test_a_camera_films_who_is_in_its_square() -> None:
    still = {"cam": Drive([Sample(0, 100, 100)])}
    walk = {"ann": Drive([Sample(0, 40, 100), Sample(10, 140, 100)])}
    assert in_view(still, walk, 80.0, lambda name: range(11)) == {"cam": {n: ["ann"] for n in range(2, 11)}}


def test_friends_in_the_interest_are_recognised_and_nobody_else() -> None:
    plan = planned(document())
    recorded = plan.recorded
    assert recorded_in(json.loads(json.dumps(plan.record()))) == recorded
    settings = recorded.settings
    stage = Stage(deployment_of(settings))
    stage.play({name: readings_of(recorded.config(name)) for name in settings.clients}, settings.until)
    found = stage.clients["ann"].results
    drives = {name: drive_of(text) for name, text in recorded.drives.items()}
    (query,) = settings.queries
    markers = stage.brokers["b1"].markers("friends")
    right = wrong = 0
    for _, each in found:
        ((camera, _),) = each.event.provenance
        region, here = markers[each.epoch - 1].region, drives[camera].at(0.0)
        assert region is not None and contains(region, Point(here.x, here.y))
        there = drives[str(each.event.attributes["friend"])].at(each.event.t)
        seen = max(abs(there.x - here.x), abs(there.y - here.y)) <= 60.001
        right, wrong = right + seen, wrong + (not seen)
    assert right > 10 and wrong == 0
    assert {each.event.attributes["friend"] for _, each in found} <= set(FRIENDS)
    assert query_of(query).graph.sources[0].type == "face"
    silent = [each for each in readings_of(recorded.config("eve")) if not each.is_silent]
    assert silent == [], "nobody wants speeds"


@pytest.mark.parametrize(
    ("interest", "query", "place", "words"),
    [
        ({"cameras": {"nodes": ["b1"]}}, {}, "cameras.nodes.0", "is no client, so it has no sensors"),
        ({"cameras": None}, {}, "queries.friends.situation", "friend needs cameras"),
        ({}, {"friends": []}, "queries.friends.friends", "nobody is looked for"),
        ({}, {"friends": ["cam1"]}, "queries.friends.friends.0", "is no client with a face"),
        ({}, {"situation": "average_speed"}, "queries.friends.friends", "average_speed looks for nobody"),
    ],
)
def test_what_cannot_work_is_one_clear_error(
    interest: dict[str, Any], query: dict[str, Any], place: str, words: str
) -> None:
    ((at, message),) = misplanned(interest, **query)
    assert at == f"interest.{place}" and words in message


def test_agents_deliver_what_the_rehearsal_does(tmp_path: Path) -> None:
    whole = document()
    file = tmp_path / "friends.yaml"
    file.write_text(to_yaml(whole))
    with run_under_test(tmp_path / "runs") as run:
        ended = rove(tmp_path / "runs", "run", str(file), "--run-id", RUN_ID, "--no-analyze", timeout=200)
        assert ended.returncode == 0, ended.stdout + ended.stderr
        assert verdict(run)["verdict"] == "valid"
        records = [each for each in read_records(run.segments("ann")) if each["kind"] == "situation_found"]
        found = [(each["epoch"], each["type"], each["at_ns"], tuple(each["ancestors"])) for each in records]
        assert len(found) > 10
        assert found == [each[:4] for each in Rehearsal(planned(whole).recorded).play()["friends"]]
        assert json.loads(records[0]["facts"])["friend"] in FRIENDS
