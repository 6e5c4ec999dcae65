"""The detection of events as it is watched: changes for the page, figures for the terminal and Prometheus."""

from types import SimpleNamespace
from typing import Any

import pytest

from node_agent.apps.comet.metrics import CONNECTED, DELAY, DETECTIONS, METRICS, OCCURRED, DetectTally
from node_agent.apps.comet.model import DetectConfig, OwnEvent
from node_agent.apps.comet.node_plan import JunctionPlan, NodePlan, Stream, TaskPlan
from node_agent.apps.comet.telemetry import (
    NODE,
    EventContact,
    EventDetected,
    EventDropped,
    EventLink,
    EventOccurred,
    EventStore,
)
from node_agent.telemetry.kinds import tag_of
from orchestrator.apps.comet.live import DetectView
from orchestrator.apps.comet.plan import LinkEstimate, Promise, Recorded
from orchestrator.live.summary import Watch
from orchestrator.runs.timeline import Change

pytestmark = pytest.mark.unit

SMOKE = Stream(0, 0, ("smoke",), ("north", "ferry", "base"))
HEAT = Stream(1, 0, ("heat",), ("ferry", "base"), pulled=True)
DRILL = Stream(2, 0, ("drill",), ("ferry", "base"), absent=True)
TASK = TaskPlan(0, "fire", "and(smoke, heat, !drill; 10s)", "base")
PLAN = Recorded(
    {
        "north": DetectConfig(NodePlan("north", (TASK,), (SMOKE,)), (OwnEvent("smoke", 0.1),)),
        "ferry": DetectConfig(NodePlan("ferry", (TASK,), (SMOKE, HEAT, DRILL)), (OwnEvent("heat", 0.1),)),
        "base": DetectConfig(
            NodePlan("base", (TASK,), (SMOKE, HEAT, DRILL), (JunctionPlan(0, ((0,), (1,)), None, (2,)),))
        ),
    },
    (Promise("fire", "and(smoke, heat, !drill; 10s)", "base", 60.0, 20.0),),
    (LinkEstimate("north", "ferry", 0.1, 0.0, 0.5, 30.0, 30.0),),
    0.05,
    {"smoke": 0.1, "heat": 0.1},
)


def seen(record: Any) -> Any:
    fields = {name: getattr(record, name) for name in record.__struct_fields__}
    return SimpleNamespace(kind=tag_of(type(record)), **fields)


def ns(seconds: float) -> int:
    return int(seconds * 1e9)


def detected(number: int, end_s: float) -> EventDetected:
    return EventDetected("sink fire", "fire", number, ns(end_s - 1), ns(end_s), ("smoke#0", "heat#0"))


def view() -> DetectView:
    return DetectView("detect", PLAN, lambda node, t_ns: t_ns / 1e9)


def values(changes: list[Change], channel: str) -> dict[str, Any]:
    return {change.key: change.value for change in changes if change.channel == channel}


def test_the_head_says_what_is_pushed_and_pulled_over_each_link() -> None:
    head = view().head()
    assert head["patterns"][0] == {
        "name": "fire",
        "pattern": "and(smoke, heat, !drill; 10s)",
        "sink": "base",
        "tolerance": 60.0,
        "promised": 20.0,
    }
    carriers = {each["name"]: (each["pushed"], each["pulled"], each["down"]) for each in head["carriers"]}
    assert carriers == {
        "north > ferry": (["smoke"], [], 30.0),
        "ferry > base": (["smoke", "!drill"], ["heat"], None),
    }


def test_detections_are_counted_once_with_their_delays() -> None:
    shown = view()
    for at, record in ((15.0, detected(1, 10.0)), (16.0, detected(1, 10.0)), (50.0, detected(2, 20.0))):
        list(shown.take("base", at, seen(record)))  # the second time after a crash
    (fire,) = values(list(shown.tick(51.0)), "detection").values()
    assert fire == {"count": 2, "late": 1, "delay": 30.0, "worst": 30.0, "last": ["smoke#0", "heat#0"]}
    assert list(shown.tick(52.0)) == []  # nothing is said twice


def test_links_and_stores_are_told_as_they_change() -> None:
    shown = view()
    list(shown.take("north", 5.0, seen(EventContact("link ferry", "ferry", True, ns(5)))))
    list(shown.take("north", 6.0, seen(EventLink("link ferry", "ferry", 3, 0, 1, 2, 4000, 1, 2, 2000))))
    list(shown.take("north", 6.0, seen(EventStore(NODE, 4, 5, 6))))
    list(shown.take("north", 6.0, seen(EventDropped(NODE, "instance", "ferry", "smoke", 1))))
    changes = list(shown.tick(7.0))
    carried = values(changes, "carried")["north>ferry"]
    assert carried["up"] is True and carried["since"] == 5.0 and carried["waiting_bytes"] == 2000
    assert values(changes, "kept")["north"] == {"instances": 4, "matches": 5, "undecided": 6, "dropped": 1}
    shown.agent("north", 8.0, 1, "killed")
    assert values(list(shown.tick(9.0)), "carried")["north>ferry"]["up"] is False


def test_a_departure_is_an_event_once_and_ends_when_it_is_over() -> None:
    shown = view()
    shown.measure(0.0)
    for number in range(100):
        list(shown.take("north", 50.0, seen(EventOccurred("source smoke", "smoke", number, 1, 1))))
    changes = list(shown.tick(60.0))
    (event,) = values(changes, "event").values()
    assert event["level"] == "warn" and "north emits smoke at 100 /min, planned 6 /min" in event["text"]
    assert "smoke" in values(changes, "assumption")
    later = list(shown.tick(980.0))
    assert values(later, "assumption")["smoke"] is None
    shown.measured(990.0)
    assert "assumption" not in {change.channel for change in shown.tick(9000.0)}


def test_the_terminal_shows_detections() -> None:
    watch = Watch({"apps": [{"name": "detect", "kind": "detect", "view": view().head()}]})
    value = {"count": 2, "late": 1, "delay": 30.0, "worst": 31.0, "last": []}
    watch.take([Change(1.0, "detect", "detection", "fire", value)])
    watch.take([Change(1.0, "detect", "carried", "north>ferry", {"waiting": 7})])
    (app,) = watch.summary().apps
    assert (app.detections, app.late, app.worst, app.waiting) == (2, 1, 31.0, 7)


def test_prometheus_gets_every_declared_metric() -> None:
    tally = DetectTally()
    records = (
        EventOccurred("source smoke", "smoke", 0, 1, 1),
        detected(1, 10.0),
        EventContact("link ferry", "ferry", True, 1),
        EventLink("link ferry", "ferry", 3, 0, 1, 2, 4000, 1, 2, 2000),
        EventStore(NODE, 4, 5, 6),
        EventDropped(NODE, "instance", "ferry", "smoke", 1),
    )
    for record in records:
        tally.take(tag_of(type(record)), record, ns(15.0))
    samples = {sample.name: sample for sample in tally.samples()}
    assert samples.keys() == {metric.name for metric in METRICS}
    assert samples[OCCURRED].value == samples[DETECTIONS].value == samples[CONNECTED].value == 1
    assert samples[DELAY].labels == ("fire",)
