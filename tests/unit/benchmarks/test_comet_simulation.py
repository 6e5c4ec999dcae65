"""Plans carried out message by message detect what occurred, cost what was estimated, and keep time."""

import pytest

from benchmarks.comet.networks import figure4, figure9
from benchmarks.comet.simulation import simulate
from node_agent.apps.comet.grammar import parse
from node_agent.apps.comet.reference import detections
from orchestrator.apps.comet.planning.planners import PLANNERS
from orchestrator.apps.comet.planning.problem import Unplannable, tasks
from orchestrator.apps.comet.planning.together import tree_within
from tests.unit.orchestrator.apps.comet.example import PATTERN, example, planned

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("planner", PLANNERS)
@pytest.mark.parametrize(
    ("text", "tolerance"), [(PATTERN, 40.0), (PATTERN, 200.0), ("seq(pe4, and(pe1, pe3; 2), pe2; 6)", 70.0)]
)
def test_a_plan_does_what_was_promised(planner: str, text: str, tolerance: float) -> None:
    given = example()
    estimator, tree = planned(tolerance, text, given)
    plan = PLANNERS[planner](estimator, tree)
    assert plan is not None
    outcome = simulate(plan, given, seed=1, duration=150.0)
    expected = detections(parse(text), outcome.instances)
    assert len(expected) > 10 and set(outcome.delays) == set(expected)
    assert outcome.worst_delay <= plan.delay + 1e-6


def test_the_estimate_is_near_what_a_plan_costs() -> None:
    given = example()
    estimator, tree = planned(60.0, PATTERN, given)
    for name in ("Comet", "ours"):
        plan = PLANNERS[name](estimator, tree)
        assert plan is not None
        outcome = simulate(plan, given, seed=2, duration=2000.0)
        assert plan.cost == pytest.approx(outcome.cost, rel=0.1)


def test_networks_of_the_figures() -> None:
    network = figure4()
    task = tasks(network.request, network.world)[0]
    with pytest.raises(Unplannable, match="allow at least 988 s"):
        tree_within(task, network.world)
    assert len(task.conjunct.events) == 8
    for depth in (1, 2, 3, 4):
        deep = figure9(depth)
        nodes = {link.a for link in deep.world.links}
        assert len(nodes) == 8 + {1: 24, 2: 12, 3: 8, 4: 7}[depth]
