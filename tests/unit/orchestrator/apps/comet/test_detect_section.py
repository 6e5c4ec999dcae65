"""From the section ``detect`` of an experiment file to a plan, and all that can be wrong on the way."""

import json
import math
import warnings
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import ValidationError

from node_agent.apps.comet.model import problems
from orchestrator.apps.comet.application import DETECT
from orchestrator.apps.comet.plan import DetectPlan, recorded_in
from orchestrator.planning.semantics import plan_run
from orchestrator.planning.sweep import cells
from orchestrator.spec.experiment import Experiment
from orchestrator.spec.translate import findings_of

pytestmark = pytest.mark.unit

LINKS = [
    {"between": ["bus", "base"], "periodic": {"up": "60s", "down": "300s"}},
    {"between": ["field", "bus"], "periodic": {"up": "60s", "down": "30s"}},
    {"between": ["barn", "bus"], "periodic": {"up": "60s", "down": "30s"}},
]
EVENTS = {"smoke": {"node": "field", "rate": "1 /min"}, "heat": {"node": "barn", "rate": "6 /h"}}
FIRE = {"pattern": "and(smoke, heat; 60s)", "sink": "base", "tolerance": "15 min"}


def document(detect: dict[str, Any] | None = None, links: Any = LINKS, **changes: Any) -> dict[str, Any]:
    nodes = ["base", "bus", "field", "barn", "isle"]
    topology = {
        "name": "farm",
        "nodes": nodes,
        "area": "100 m x 100 m",
        "mobility": {"model": "static", "positions": {node: [0, n] for n, node in enumerate(nodes)}},
        "radio": {"model": "contacts", "rate": "256 kb/s", "links": links},
    }
    section = {"events": EVENTS, "patterns": {"fire": FIRE}} | (detect or {})
    return {
        "name": "farm",
        "topology": topology,
        "routing": "none",
        "duration": "1 h",
        "detect": section,
    } | changes


def planned(detect: dict[str, Any] | None = None, **changes: Any) -> DetectPlan:
    run, findings = plan_run(Experiment.model_validate(document(detect, **changes)))
    assert run is not None, findings
    plan = run.apps["detect"]
    assert isinstance(plan, DetectPlan)
    return plan


def misplanned(detect: dict[str, Any] | None = None, **changes: Any) -> list[tuple[str, str]]:
    run, findings = plan_run(Experiment.model_validate(document(detect, **changes)))
    assert run is None
    return [(".".join(map(str, each.at)), each.message) for each in findings]


def misread(detect: dict[str, Any]) -> list[str]:
    whole = document(detect)
    with pytest.raises(ValidationError) as caught:
        Experiment.model_validate(whole)
    return [each.message for each in findings_of(caught.value, Experiment, whole)]


def test_each_node_gets_its_part() -> None:
    plan = planned()
    assert plan.nodes() == ("barn", "base", "bus", "field")
    assert [event.name for event in plan.agent_config("field").events] == ["smoke"]
    assert all(problems(plan.agent_config(node), node) == [] for node in plan.nodes())
    (promise,) = plan.recorded.promises
    assert promise.delay <= 15 * 60 and promise.pattern == "and(smoke, heat; 60.0s)"
    shown = "\n".join(str(each) for each in plan.shown())
    assert "pull 1: smoke over field > bus" in shown and "all push: costs" in shown
    assert '-.->|"pull smoke"|' in plan.graph("mmd") and "stroke-dasharray" in plan.graph("svg")
    assert plan.document()["patterns"][0]["name"] == "fire"


def test_a_manifest_has_the_whole_plan() -> None:
    plan = planned()
    assert recorded_in(plan.record()) == plan.recorded
    assert recorded_in({}) is None and DETECT.examiner({}) is None and DETECT.examiner(plan.record())


def test_alternatives_and_several_patterns_share_events() -> None:
    more = {"fire": FIRE, "any": {"pattern": "or(smoke, heat)", "sink": "base", "tolerance": "15 min"}}
    plan = planned({"patterns": more, "planner": "all_push"})
    assert [task.request for task in plan.agent_config("bus").plan.tasks] == ["fire", "any", "any"]


def test_zipf_gives_rates_by_the_seed() -> None:
    events = {name: {"node": node} for name, node in (("smoke", "field"), ("heat", "barn"))}
    plan = planned({"events": events, "zipf": {"fastest": "2 /min"}})
    rates = [event.rate for node in ("barn", "field") for event in plan.agent_config(node).events]
    assert sorted(rates) == pytest.approx([1 / 60, 2 / 60])


def test_times_in_place_of_a_rate() -> None:
    events = {**EVENTS, "heat": {"node": "barn", "times": ["20s", ["5s", "9s"]]}}
    (event,) = planned({"events": events}).agent_config("barn").events
    assert event.times == ((5.0, 9.0), (20.0, 20.0)) and event.rate == pytest.approx(2 / 3600)
    sweep = {"detect.planner": ["comet", "ours"]}
    assert len(cells(Experiment.model_validate(document({"events": events}, sweep=sweep)))) == 2


def test_a_listed_instance_that_fits_makes_a_pattern_possible() -> None:
    heat = {"node": "barn", "times": [["5s", "200s"], "300s"]}
    assert planned({"events": {**EVENTS, "heat": heat}}).recorded.cost > 0
    apart = {"smoke": {"node": "field", "times": ["100s"]}, "heat": {"node": "barn", "times": ["300s"]}}
    ((_, message),) = misplanned({"events": apart})
    assert "can never be met" in message


def test_a_plan_says_where_delays_may_be_longer_than_promised() -> None:
    times = {"between": ["bus", "base"], "times": [["0s", "60s"], ["100s", "103s"], ["900s", "1 h"]]}
    plan = planned({"patterns": {"fire": {**FIRE, "tolerance": "2 h"}}}, links=[times, *LINKS[1:]])
    assert plan.planned is not None and plan.planned.doubts == (
        "bus – base is down for up to 797 s, the plan assumes 418.5 s",
        "1 of 3 contacts of bus – base may end before nodes notice them",
    )
    assert (clear := planned().planned) is not None and clear.doubts == ()


@pytest.mark.parametrize(
    ("detect", "place", "words"),
    [
        (
            {"events": {**EVENTS, "heat": {"node": "barn", "rate": 1, "start": "2 h"}}},
            "events.heat.start",
            "the run is over after",
        ),
        ({"patterns": {"fire": {**FIRE, "sink": "bas"}}}, "patterns.fire.sink", "there is no node"),
        ({"events": {**EVENTS, "x": {"node": "nowhere", "rate": 1}}}, "events.x.node", "there is no node"),
        (
            {"patterns": {"fire": {**FIRE, "pattern": "and(smoke; 9s)"}}},
            "patterns.fire.pattern",
            "character 1",
        ),
        ({"patterns": {"fire": {**FIRE, "pattern": "and(smoke, cold; 9s)"}}}, "patterns.fire", "no source"),
        ({"patterns": {"fire": {**FIRE, "sink": "isle"}}}, "patterns.fire", "no link leads"),
        ({"patterns": {"fire": {**FIRE, "tolerance": "60s"}}}, "patterns.fire", "allow at least"),
        (
            {"events": {**EVENTS, "heat": {"node": "barn", "rate": 1, "length": "99s"}}},
            "patterns.fire",
            "can never be met",
        ),
    ],
)
def test_what_cannot_be_planned_is_one_clear_error(detect: dict[str, Any], place: str, words: str) -> None:
    ((at, message),) = misplanned(detect)
    assert at == f"detect.{place}" and words in message


def test_other_radios_have_no_contacts() -> None:
    whole = document()
    whole["topology"]["radio"] = {
        "model": "disc",
        "range": "300 m",
        "bandwidth": "11 Mb/s",
        "latency": "1 ms",
    }
    run, findings = plan_run(Experiment.model_validate(whole))
    assert run is None and "links that come and go" in findings[0].message


@pytest.mark.parametrize(
    ("detect", "words"),
    [
        ({"events": {"smoke": {"node": "field", "rate": 0}}}, "too small: it must be more than 0"),
        ({"events": {"smoke": {"node": "field"}}}, "none of rate, times and trace"),
        ({"events": {"smoke": {"node": "field", "rate": 1, "times": [1]}}}, "times say when"),
        ({"events": {"smoke": {"node": "field", "times": [[9, 5]]}}}, "before it starts"),
        ({"events": {"smoke": {"node": "field", "rate": 1, "start": 9, "stop": 5}}}, "before it starts"),
        ({"patterns": {"fire": {**FIRE, "tolerance": 0}}}, "too small"),
    ],
)
def test_what_the_file_cannot_say(detect: dict[str, Any], words: str) -> None:
    (message,) = misread(detect)
    assert words in message


@pytest.mark.parametrize(
    "spoil",
    [
        lambda d: d["rates"].update(smoke=-1.0),
        lambda d: d["rates"].update(smoke=1e300),
        lambda d: d["links"][0].update(edp=-5.0),
        lambda d: d["configs"]["bus"]["plan"]["streams"][0].update(path=["x", "y"]),
        lambda d: d["configs"]["bus"]["plan"]["streams"][0].update(path=[]),
        lambda d: d["configs"]["bus"]["plan"]["tasks"][0].update(pattern="and(("),
        lambda d: d["configs"].update(other=d["configs"]["bus"]),
        lambda d: d.pop("promises"),
    ],
)
def test_a_damaged_manifest_has_no_plan(spoil: Callable[[dict[str, Any]], Any]) -> None:
    record = json.loads(json.dumps(planned().record()))
    assert recorded_in(record) is not None
    spoil(record["detection"])
    assert recorded_in(record) is None


def test_rates_that_are_no_numbers_for_a_machine_are_refused_in_words() -> None:
    (said,) = misread({"events": {**EVENTS, "smoke": {"node": "field", "rate": 10**400}}})
    assert "not a finite number" in said


def test_events_that_hardly_ever_occur_can_be_planned() -> None:
    events = {**EVENTS, "smoke": {"node": "field", "rate": "1e-300 /s"}}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert math.isfinite(planned({"events": events}).recorded.cost)


def test_links_are_planned_to_carry_a_shared_event_once() -> None:
    pushed = {"patterns": {"fire": FIRE, "also": FIRE}, "planner": "all_push"}
    (link,) = [each for each in planned(pushed).recorded.links if each.lower == "field"]
    assert link.instances == pytest.approx(1 / 60)
