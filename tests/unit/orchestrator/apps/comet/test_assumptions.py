"""Whether what a run measures still is what its plan assumed, and plans that are made anew from it."""

from types import SimpleNamespace
from typing import Any

import pytest

from node_agent.apps.comet.model import DetectConfig, OwnEvent
from node_agent.apps.comet.node_plan import NodePlan, Stream
from orchestrator.apps.comet.assumptions import Measured, MeasuredLink, MeasuredRate, departures
from orchestrator.apps.comet.measuring import Measuring, with_measured
from orchestrator.apps.comet.plan import LinkEstimate, Recorded, recorded_in
from orchestrator.apps.comet.planned import planned_detection
from orchestrator.apps.comet.planning.together import under
from orchestrator.spec.experiment import Experiment
from tests.unit.orchestrator.apps.comet.test_detect_section import document, planned

pytestmark = pytest.mark.unit

FIELD = DetectConfig(
    NodePlan("field", (), (Stream(0, 0, ("smoke",), ("field", "bus")),)),
    (OwnEvent("smoke", 1.0, end=1000.0),),
)
PLAN = Recorded(
    {"field": FIELD}, (), (LinkEstimate("field", "bus", 1.0, 0.0, 0.5, 60.0, 30.0),), 0.5, {"smoke": 1.0}
)


def texts(*, count: int = 1000, seconds: float = 1000.0, link: MeasuredLink | None = None) -> list[str]:
    links = {} if link is None else {("field", "bus"): link}
    measured = Measured({"smoke": MeasuredRate(count, seconds)}, links)
    return [each.text for each in departures(PLAN, measured)]


@pytest.mark.parametrize("count", [1000, 1240, 810])
def test_a_rate_within_chance_and_a_quarter_is_no_departure(count: int) -> None:
    assert texts(count=count) == []


@pytest.mark.parametrize("count", [1260, 790, 0, 3200])
def test_another_rate_is_named_with_the_planned_one(count: int) -> None:
    (text,) = texts(count=count)
    assert text == f"field emits smoke at {count * 0.06:.3g} /min, planned 60 /min"


def test_few_events_prove_nothing() -> None:
    assert texts(count=5, seconds=1.0) == [] and texts(count=0, seconds=20.0) == []
    assert texts(count=40, seconds=1.0) != []


@pytest.mark.parametrize(
    "link",
    [
        MeasuredLink(10, 60.0, 75.0),
        MeasuredLink(10, 120.0, 290.0),  # random contacts can do that
        MeasuredLink(2, 300.0, 300.0),
        MeasuredLink(20, 5.0, 10.0),  # up more often than assumed
    ],
)
def test_a_link_within_chance_is_no_departure(link: MeasuredLink) -> None:
    assert texts(link=link) == []


def test_links_that_are_down_for_longer_are_named() -> None:
    (mean,) = texts(link=MeasuredLink(16, 150.0, 200.0))
    assert mean == "field > bus is down for 150 s on average, planned 60 s"
    (once,) = texts(link=MeasuredLink(1, 60.0, 400.0))
    assert once == "field > bus was down for 400 s at a stretch, planned 60 s"


def occurred(number: int) -> Any:
    return SimpleNamespace(kind="event_occurred", event="smoke", number=number)


def contact(up: bool, lasted_s: float) -> Any:
    return SimpleNamespace(kind="event_contact", neighbour="bus", up=up, lasted_ns=int(lasted_s * 1e9))


def test_records_are_measured_once_and_while_sources_are_active() -> None:
    measuring = Measuring(PLAN)
    for number in (0, 1, 1, 0, 2):  # a killed node tells some again
        measuring.take("field", 1.0, occurred(number))
    measuring.take("field", 10.0, contact(True, 10.0))
    measuring.take("field", 40.0, contact(False, 30.0))
    measuring.take("field", 100.0, contact(True, 60.0))
    measuring.take("field", 120.0, contact(False, 20.0))
    measured = measuring.measured(opened=5.0, now=2000.0)
    assert measured.rates["smoke"] == MeasuredRate(3, 1000.0)  # it stops 1000 s after sources opened
    link = measured.link("bus", "field")
    assert link == MeasuredLink(2, 60.0, 1880.0, 25.0)


def test_a_link_that_never_came_up_has_been_down_all_the_time() -> None:
    assert Measuring(PLAN).measured(0.0, 700.0).links["field", "bus"].longest_down == 700.0


def test_an_event_that_never_occurred_can_still_be_planned() -> None:
    measured = Measured({"smoke": MeasuredRate(0, 100.0), "other": MeasuredRate(9, 1.0)})
    assert with_measured({"smoke": 1.0}, measured) == {"smoke": 0.005}


def test_plans_assume_another_rate_than_the_true_one() -> None:
    plan = planned(
        {
            "events": {
                "smoke": {"node": "field", "rate": "1 /min", "assume": "3 /min"},
                "heat": {"node": "barn", "rate": "6 /h"},
            }
        }
    )
    assert plan.recorded.rates["smoke"] == pytest.approx(0.05)
    assert plan.agent_config("field").events[0].rate == pytest.approx(1 / 60)
    assert recorded_in(plan.record()) == plan.recorded


def test_a_plan_made_anew_is_no_dearer_than_the_old_one_where_both_are_now() -> None:
    (entry,) = Experiment.model_validate(document()).entries().values()
    before = planned_detection(entry)
    measured = Measured(
        {"smoke": MeasuredRate(10, 3600.0), "heat": MeasuredRate(720, 3600.0)},
        {("field", "bus"): MeasuredLink(5, 45.0, 60.0, 50.0)},
    )
    after = planned_detection(entry, measured)
    kept = under(before.joint, after.given)
    assert kept.cost > after.joint.cost  # smoke became the rare one
    assert under(before.joint, before.given).cost == pytest.approx(before.joint.cost)
    assert under(before.joint, before.given).plans[0].delay == pytest.approx(before.joint.plans[0].delay)
