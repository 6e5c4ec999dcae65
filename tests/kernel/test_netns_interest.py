"""Prepared and shared graphs of moving interests between namespaces: complete, and of their regions."""

from pathlib import Path

import pytest

from node_agent.telemetry.segments import inspect
from orchestrator.apps.mcep.plan import InterestPlan
from orchestrator.planning.load import load_experiment
from orchestrator.planning.semantics import plan_run
from orchestrator.runs.run_directory import RunDirectory
from orchestrator.spec.dump import to_yaml
from tests.kernel.test_netns_run import assert_nothing_is_left, root_of
from tests.unit.orchestrator.apps.mcep.observing import (
    delivered_to,
    expected_of,
    known_epochs,
    outside,
    records_of,
)
from tests.unit.rove_process import RUN_ID, rove

EXPERIMENT = Path(__file__).parents[2] / "experiments" / "mcep" / "prepared.yaml"


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_predicted_and_strong_queries_deliver_what_an_observer_expects(
    tmp_path: Path, run: RunDirectory
) -> None:
    experiment = load_experiment(EXPERIMENT)
    file = tmp_path / "prepared.yaml"
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
    switches = records_of(run, nodes, "interest_switched")
    found = records_of(run, nodes, "situation_found")
    assert outside(recorded, found, switches) == 0
    how = {(each["query"], each["how"]) for each in switches}
    assert {("ahead", "prepared"), ("first", "shared"), ("second", "shared"), ("second", "began")} <= how
    for config in recorded.settings.queries:
        known = known_epochs(config.name, switches)
        delivered = [each for each in delivered_to(found, config.name) if each[0] in known]
        assert len(known) > 1 and delivered == expected_of(recorded, config, switches)
        assert len(delivered) > 3
        last = max((each for each in switches if each["query"] == config.name), key=lambda s: int(s["epoch"]))
        assert last["x"] is None, "the query came to its end"
    assert_nothing_is_left(run)
