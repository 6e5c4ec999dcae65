"""Migrations of an experiment: where operators may go, and one clear error for each that cannot be."""

from typing import Any

import pytest

from node_agent.apps.dataflow.belief import scopes_of
from node_agent.apps.dataflow.model.plan import DeploymentPlan, Migration
from orchestrator.apps.dataflow.plan import DataflowPlan
from orchestrator.apps.dataflow.recorded import deployment_in
from orchestrator.planning.semantics import plan_run
from tests.unit.specs import experiment, planned, topology

pytestmark = pytest.mark.unit

PLACEMENT = {
    "policy": "explicit",
    "nodes": {"camera": ["n0"], "detect": ["n1"], "recognise": ["n2"], "screen": ["n4"]},
}
MOVE = {"at": "10s", "operator": "recognise", "to": "n3"}


def document(*migrations: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {
        "topology": topology(nodes=[f"n{i}" for i in range(6)]),
        "placement": PLACEMENT,
        "migrations": [MOVE | each for each in migrations],
        **changes,
    }


def plan_of(*migrations: dict[str, Any]) -> DataflowPlan:
    plan = planned(experiment(**document(*migrations))).apps["query"]
    assert isinstance(plan, DataflowPlan)
    return plan


def deployment(*migrations: dict[str, Any]) -> DeploymentPlan:
    return plan_of(*migrations).deployment


def test_hosts_in_the_order_of_times() -> None:
    (moving,) = deployment({"at": "40s", "to": "n5"}, {}, {"at": "50s", "to": "n2"}).moving
    assert moving.hosts == ("n2", "n3", "n5") and moving.coordinator == "n4"
    assert moving.migrations[0] == Migration(10.0, "n3")
    assert [each.at for each in moving.migrations] == [10, 40, 50]


def test_targets_take_part_and_are_believed() -> None:
    plan = plan_of({"to": "n5"})
    assert "n5" in plan.nodes() and "n3" not in plan.nodes()
    scopes = scopes_of(plan.deployment).scopes
    assert scopes["n5"] == scopes["n2"]
    assert not scopes["n4"]["recognise/0"].carries  # type: ignore[attr-defined]
    assert plan.deployment.operators_on("n5") == ("recognise",) and plan.deployment.deployed_on("n5") == ()
    assert plan.deployment.deployed_on("n4") == ("screen", "recognise")
    assert plan.document()["migrations"] == [
        {
            "operator": "recognise",
            "at_s": 10.0,
            "from": "n2",
            "to": "n5",
            "method": "live",
            "coordinator": "n4",
        }
    ]


def test_a_recorded_plan_is_read_again_and_an_impossible_one_is_not() -> None:
    plan = plan_of({})
    record = plan.record()
    assert deployment_in(record) == plan.deployment
    record["plan"]["moving"][0]["operator"] = "nobody"
    assert deployment_in(record) is None


@pytest.mark.parametrize(
    ("migrations", "changes", "text"),
    [
        ([{"operator": "recogniser"}], {}, "no operator"),
        ([{"operator": "camera"}], {}, "source or sink"),
        ([{"operator": "screen"}], {}, "source or sink"),
        ([{"to": "n9"}], {}, "no node"),
        ([{"to": "n2"}], {}, "already is on n2"),
        ([{}, {"at": "20s"}], {}, "already is on n3"),
        ([{}, {"to": "n5"}], {}, "already moves at this time"),
        ([{"at": "60s"}], {}, "ends after 60 s"),
        ([{}, {"operator": "detect"}], {}, "neighbours"),
        ([{}], {"query": {"name": "synthetic_chain", "reliability": "exactly_once"}}, "best_effort"),
        ([{}], {"switching": {"mode": "exchange"}}, "exchange"),
        ([{}], {"switching": {"policy": "backpressure"}}, "exchange"),
        (
            [{}],
            {"placement": {"policy": "random"}, "replicas": {"recognise": 2}},
            "it has one replica, not 2",
        ),
        (
            [{}],
            {"placement": {"policy": "random"}, "replicas": {"detect": 2}},
            "its neighbour detect has one replica",
        ),
    ],
)
def test_what_cannot_be(migrations: list[dict[str, Any]], changes: dict[str, Any], text: str) -> None:
    run, findings = plan_run(experiment(**document(*migrations, **changes)))
    assert run is None
    wrong = [finding for finding in findings if "migrations" in finding.at]
    assert text in wrong[0].message
    assert len({(finding.at, finding.message) for finding in wrong}) == len(wrong) <= 2


def test_windows_and_joins_do_not_move() -> None:
    query = {
        "operators": {
            "camera": {"kind": "synthetic_source"},
            "detect": {"kind": "work", "after": "camera", "window": 2},
            "recognise": {"kind": "work", "after": "detect"},
            "screen": {"kind": "sink", "after": "recognise"},
        }
    }
    run, findings = plan_run(experiment(**document({"operator": "detect"}, query=query)))
    assert run is None and "window or a join" in findings[0].message


def test_neighbours_do_not_crash() -> None:
    plan = plan_of({})
    assert plan.harmed_by_crash("n1") is not None
    assert plan.harmed_by_crash("n2") is None and plan.harmed_by_crash("n3") is None
