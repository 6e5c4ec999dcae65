"""Operators of a moving query go to other brokers between namespaces: nothing is lost or wrong."""

from pathlib import Path

import pytest

from node_agent.telemetry.segments import inspect
from orchestrator.apps.mcep.plan import InterestPlan
from orchestrator.apps.mcep.rehearsal import Rehearsal
from orchestrator.planning.load import load_experiment
from orchestrator.planning.semantics import plan_run
from orchestrator.runs.run_directory import RunDirectory
from orchestrator.spec.dump import to_yaml
from tests.kernel.test_netns_run import assert_nothing_is_left, root_of
from tests.unit.orchestrator.apps.mcep.observing import delivered_to, records_of
from tests.unit.rove_process import RUN_ID, rove

EXPERIMENT = Path(__file__).parents[2] / "experiments" / "mcep" / "moving-netns.yaml"


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_operators_move_while_events_flow(tmp_path: Path, run: RunDirectory) -> None:
    experiment = load_experiment(EXPERIMENT)
    file = tmp_path / "moving.yaml"
    file.write_text(to_yaml(experiment.resolved() | {"name": "line"}))
    planned, findings = plan_run(experiment)
    assert planned is not None, findings
    plan = planned.apps["interest"]
    assert isinstance(plan, InterestPlan)
    recorded = plan.recorded
    # A busy machine may make the run invalid; what it delivers must be right.
    ended = rove(root_of(run), "run", str(file), "--run-id", RUN_ID, "--no-analyze", timeout=300)
    assert ended.returncode in (0, 3), ended.stdout + ended.stderr
    nodes = [*recorded.settings.areas, *recorded.settings.clients]
    assert all(inspect(run.segments(node)).complete for node in nodes)
    placed = [each for each in records_of(run, nodes, "operator_placed") if each["migration"]]
    assert [each["outcome"] for each in placed] == ["moved"] * 5
    copied: dict[str, int] = {}
    for each in records_of(run, nodes, "operator_traffic"):
        copied[each["node"]] = max(copied.get(each["node"], 0), each["state_copied"])
    assert sum(copied.values()) == 10_000_000, "the operator with 5 MB moved twice"
    found = records_of(run, nodes, "situation_found")
    expected = [each[:4] for each in Rehearsal(recorded).play()["ahead"]]
    assert len(expected) > 20 and delivered_to(found, "ahead") == expected
    assert_nothing_is_left(run)
