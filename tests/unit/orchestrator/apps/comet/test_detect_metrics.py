"""The metrics of a run that detects events, from rows as Spark gives them."""

from types import SimpleNamespace
from typing import Any

import pytest

from node_agent.apps.comet.model import DetectConfig, OwnEvent
from node_agent.apps.comet.node_plan import NodePlan, Stream
from orchestrator.apps.comet.analytics.metrics import METRICS, notes, values
from orchestrator.apps.comet.plan import LinkEstimate, Promise, Recorded

pytestmark = pytest.mark.unit

BUS = DetectConfig(
    NodePlan("bus", (), (Stream(0, 0, ("smoke",), ("bus", "base")),)), (OwnEvent("smoke", 0.01),)
)
PLAN = Recorded(
    {"bus": BUS},
    (Promise("fire", "and(smoke, heat; 10s)", "base", 900.0, 100.0),),
    (LinkEstimate("bus", "base", 0.02, 0.0, 0.5, 60.0, 30.0),),
    0.01,
    {"smoke": 0.01},
)
LINK = {"node": "bus", "neighbour": "base", "instances": 4, "references": 0, "requests": 0, "marks": 9}


def occurred(event: str, number: int, at_s: float) -> dict[str, Any]:
    return {"event": event, "number": number, "start_ns": int(at_s * 1e9), "end_ns": int(at_s * 1e9)}


def detected(at_s: float, end_s: float, *constituents: str, told: int = 1) -> dict[str, Any]:
    row = {"pattern": "fire", "t_ns": int(at_s * 1e9), "end_ns": int(end_s * 1e9), "told": told}
    return {**row, "delay_s": at_s - end_s, "constituents": list(constituents)}


def figures(detections: list[dict[str, Any]], smoke: int = 3, **contact: Any) -> Any:
    run = SimpleNamespace(manifest={"moving_from_ns": 0})
    subject: Any = SimpleNamespace(app=SimpleNamespace(plan=PLAN), run=run, zero_ns=0, ended_ns=int(600e9))
    met = {
        "node": "bus",
        "neighbour": "base",
        "downs": 6,
        "ups": 6,
        "first_ns": int(10e9),
        "down_ns": int(310e9),
        "up_ns": int(180e9),
        "longest_ns": int(60e9),
        "t_ns": int(599e9),
        "up": True,
    }
    rows: dict[str, list[dict[str, Any]]] = {
        "occurrences": [
            occurred("smoke", 0, 10.0),
            occurred("heat", 0, 12.0),
            occurred("smoke", 1, 300.0),
            occurred("heat", 1, 305.0),
            occurred("smoke", 2, 595.0),
            occurred("heat", 2, 599.0),
        ],
        "detections": detections,
        "links": [{**LINK, "bytes": 4256, "connections": 3, "waiting_bytes_max": 2000}],
        "waiting": [{"node": "bus", "t_ns": 0, "bytes": 2000}],
        "dropped": [],
        "counts": [{"event": "smoke", "count": smoke}],
        "contacts": [{**met, **contact}],
    }
    return values(subject, rows)


def test_what_was_missed_invented_late_and_told_twice() -> None:
    found = figures(
        [
            detected(50.0, 12.0, "smoke#0", "heat#0", told=2),
            detected(500.0, 305.0, "smoke#0", "heat#1"),
        ]
    )
    assert {metric.name for metric in METRICS} <= set(found)
    assert found["detections"] == 2 and found["detections_duplicated"] == 1
    assert found["detections_missed"] == 1 and found["detections_invented"] == 1  # the last is not due yet
    assert found["detections_late"] == 1 and found["detection_delay_max_s"] == 195.0
    assert found["patterns"]["fire"]["expected"] == 3


def test_links_stand_beside_the_plan() -> None:
    found = figures([])
    assert found["detection_delay_max_s"] is None and found["detections_missed"] == 2
    link = found["links"]["bus > base"]
    assert link["instances"] == 4 and link["planned"] == pytest.approx(0.02 * 600)
    assert found["detection_cost"] == pytest.approx(4 * 0.5 / 10) and found["detection_cost_planned"] == 0.6


def test_assumptions_stand_beside_what_was_measured() -> None:
    found = figures([])
    assert found["assumptions"] == {
        "smoke per minute": {"planned": 0.6, "measured": 0.3, "departed": 0},
        "bus > base down s": {"planned": 60.0, "measured": 60.0, "departed": 0},
    }
    assert found["plan_departures"] == 0 and notes({}, [found]) == []


def test_what_left_the_assumptions_is_noted_with_what_to_do() -> None:
    found = figures([], smoke=200, up=False, t_ns=int(100e9))
    assert found["plan_departures"] == 2
    (note,) = notes({}, [found])
    assert "smoke per minute 20, planned 0.6; bus > base down s 500, planned 60" in note
    assert "rove plan FILE --measured RUN" in note
