"""The Comet paper's figures: the files that run them, and the networks that the benchmark reads from them."""

from functools import partial
from pathlib import Path

import pytest

from benchmarks.comet.networks import EXPERIMENTS, TOPOLOGIES, figure6
from benchmarks.comet.planned import costs
from benchmarks.comet_figures import measured
from orchestrator.apps.comet.planned import section_of
from orchestrator.apps.comet.planning.conversion import Order
from orchestrator.apps.comet.planning.planners import Planner, comet
from orchestrator.planning.load import load_checked

pytestmark = pytest.mark.unit

FIGURES = {
    "fig4": {"fig4"},
    "fig5": {"fig5"},
    "fig6": {"fig6", "fig6-uniform"},
    "fig7": {"fig6", "fig6-uniform"},
    "fig8": {"fig8"},
    "fig9": {"fig9-depth1", "fig9-depth2", "fig9-depth3", "fig9-depth4"},
    "fig10": {"fig4"},
}


@pytest.mark.parametrize("figure", FIGURES)
def test_a_figures_file_runs_on_the_networks_of_the_benchmark(figure: str) -> None:
    experiment = load_checked(EXPERIMENTS / f"{figure}.yaml")
    varied = experiment.sweep.get("topology", {})
    named = {Path(str(each)).stem for each in varied.values()} if isinstance(varied, dict) else set()
    assert (named or {experiment.topology.name.removeprefix("comet-")}) == FIGURES[figure]
    assert all((TOPOLOGIES / f"{each}.yaml").exists() for each in FIGURES[figure])
    assert "detect.planner" in experiment.sweep


def test_all_figures_detect_the_same() -> None:
    sections = []
    for figure in FIGURES:
        (entry,) = load_checked(EXPERIMENTS / f"{figure}.yaml").entries().values()
        sections.append(section_of(entry))
    assert all(each == sections[0] for each in sections)


def test_the_benchmark_says_how_to_run_a_figure() -> None:
    ((name, figures, rows),) = measured("10")
    assert name == "10" and figures["command"] == "rove run experiments/comet/fig10.yaml"
    assert any(row["comet"] is not None and row["comet"] < row["comet_first_phase"] for row in rows)
    assert figures["dearer_min"] == []


def test_the_order_of_conversions_matters_if_the_first_phase_stops_at_what_does_not_fit() -> None:
    planners: dict[str, Planner] = {
        "cdr": partial(comet, stops=True),
        "cost": partial(comet, order=Order.COST, stops=True),
        "goes_on": comet,
    }
    found = costs(figure6(uniform_cost=True), 15, planners)
    cdr, cost, goes_on = (found[name] for name in planners)
    assert cdr is not None and cost is not None and goes_on is not None
    assert goes_on <= cdr < 0.7 * cost
