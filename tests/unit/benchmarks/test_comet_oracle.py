"""Some random runs of the state machines over contacts, smooth and rough, against the omniscient observer."""

import pytest

from benchmarks.comet.carried_out import carry_out
from benchmarks.comet.networks import figure4
from benchmarks.comet.planned import prepared
from benchmarks.comet.scenarios import scenario
from benchmarks.comet_oracle import row
from orchestrator.apps.comet.planning.planners import comet

pytestmark = pytest.mark.unit


def test_machines_carry_out_plans_of_the_figures() -> None:
    network = figure4()
    estimator, tree = prepared(network, 30 * 60)
    plan = comet(estimator, tree)
    assert plan is not None
    outcome = carry_out(plan, network.world, 1, 4e4)
    assert outcome.cost == pytest.approx(plan.cost, rel=0.6) and outcome.events_sent > 100
    assert all(delay <= plan.delay for delay in outcome.delays.values())


@pytest.mark.parametrize("seed", range(12))
def test_nodes_detect_what_an_omniscient_observer_sees(seed: int) -> None:
    rough = seed % 2 == 1
    found = row(scenario(seed, rough=rough), rough=rough)
    wrong = {key: found[key] for key in ("missed", "invented", "duplicated", "late", "refused", "dropped")}
    assert not any(wrong.values()), f"{found['patterns']}: {wrong}"
