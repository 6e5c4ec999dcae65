"""The analysis of a run that detects events, whose truth is known, with a lie among its records."""

import json
from pathlib import Path

import msgspec
import pytest
from pyspark.sql import SparkSession

from node_agent.apps.comet.model import DetectConfig, OwnEvent
from node_agent.apps.comet.node_plan import JunctionPlan, NodePlan, Stream, TaskPlan
from node_agent.apps.comet.telemetry import (
    NODE,
    EventArrived,
    EventAsked,
    EventContact,
    EventDetected,
    EventDropped,
    EventLink,
    EventOccurred,
    EventStore,
)
from node_agent.model.telemetry import AgentStart, AgentStop
from orchestrator.analytics.pipeline import analyze
from orchestrator.analytics.store import TableStore
from orchestrator.apps.comet.plan import LinkEstimate, Promise, Recorded
from tests.synthetic_runs import END_S, RunWriter, ns

pytestmark = pytest.mark.timeout(240)

SMOKE, HEAT = Stream(0, 0, ("smoke",), ("n1", "n9")), Stream(1, 0, ("heat",), ("n9",))
TASK = TaskPlan(0, "fire", "and(smoke, heat; 10s)", "n9")
PLAN = Recorded(
    {
        "n1": DetectConfig(NodePlan("n1", (TASK,), (SMOKE,)), (OwnEvent("smoke", 0.1),)),
        "n9": DetectConfig(
            NodePlan("n9", (TASK,), (SMOKE, HEAT), (JunctionPlan(0, ((0, 1),)),)), (OwnEvent("heat", 0.1),)
        ),
    },
    (Promise("fire", "and(smoke, heat; 10s)", "n9", 60.0, 20.0),),
    (LinkEstimate("n1", "n9", 0.1, 0.0, 0.5, 1.0, 60.0),),
    0.05,
    {"smoke": 5.0, "heat": 0.1},
)


def detected(number: int, start_s: float, end_s: float, *constituents: str) -> EventDetected:
    return EventDetected("sink fire", "fire", number, ns(start_s), ns(end_s), constituents)


def test_detections_are_counted_and_held_against_the_truth(spark: SparkSession, tmp_path: Path) -> None:
    writer = RunWriter(tmp_path, "farm", "run")
    writer.app = ""
    for node in ("n1", "n9"):
        writer.record(node, 0.0, AgentStart("0.1.0", "virtual", ()))
    writer.app = "detect"
    for number, at_s in enumerate((10.0, 50.0)):
        writer.record("n1", at_s, EventOccurred("source smoke", "smoke", number, ns(at_s), ns(at_s)))
        writer.record(
            "n9", at_s + 2, EventOccurred("source heat", "heat", number, ns(at_s + 2), ns(at_s + 2))
        )
    writer.record("n1", 20.0, EventLink("link n9", "n9", 1, 0, 0, 3, 1500, 1, 0, 0))
    writer.record("n1", 5.0, EventContact("link n9", "n9", True, ns(5.0)))
    writer.record("n1", 15.0, EventContact("link n9", "n9", False, ns(10.0)))
    writer.record("n1", 19.0, EventContact("link n9", "n9", True, ns(4.0)))
    writer.record("n9", 20.0, EventArrived(NODE, "fire", "smoke", 0))
    writer.record("n9", 20.0, EventAsked(NODE, "fire", ("smoke",), ns(1.0), ns(9.0)))
    writer.record("n9", 20.0, detected(1, 10.0, 12.0, "smoke#0", "heat#0"))
    writer.record("n9", 21.0, detected(1, 10.0, 12.0, "smoke#0", "heat#0"))  # told again after a crash
    writer.record("n1", 22.0, EventStore(NODE, 1, 2, 3))
    writer.record("n1", 23.0, EventDropped(NODE, "instance", "n9", "smoke", 1))
    writer.record("n1", 24.0, detected(1, 50.0, 52.0, "smoke#1", "heat#1"))  # there is no sink
    writer.app = ""
    for node in ("n1", "n9"):
        writer.record(node, END_S, AgentStop("stopped"))
    directory = writer.write()
    manifest = json.loads((directory / "manifest.json").read_text())
    del manifest["plan"]
    manifest["apps"] = {"detect": {"kind": "detect", "detection": msgspec.to_builtins(PLAN)}}
    (directory / "manifest.json").write_text(json.dumps(manifest))
    analyze([directory], spark=spark)
    summary = json.loads((directory / "summary.json").read_text())
    found = summary["metrics"]
    assert found["detections"] == 1 and found["detections_duplicated"] == 1 and found["detections_late"] == 0
    assert found["detections_missed"] == 1 and found["detections_invented"] == 0
    assert found["detection_delay_max_s"] == 8.0 and found["event_dropped"] == 1
    assert found["links"]["n1 > n9"]["bytes"] == 1500
    assumed = found["assumptions"]
    assert assumed["smoke per minute"]["departed"] == 1 and assumed["heat per minute"]["departed"] == 0
    assert assumed["n1 > n9 down s"] == {"planned": 1.0, "measured": 4.0, "departed": 0}
    assert found["plan_departures"] == 1
    store = TableStore(directory.parents[1])
    steps = store.read(spark, "event_steps", ["run"]).orderBy("t_ns", "step").collect()
    assert [row["step"] for row in steps] == ["arrived", "asked", "dropped"]
    assert (
        store.read(spark, "detections", ["run"]).count() == 1
        and store.read(spark, "event_stores", ["run"]).count() == 1
    )
