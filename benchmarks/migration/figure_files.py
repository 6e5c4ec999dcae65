"""What ``experiments/mcep/fig4-12.yaml`` and ``fig4-12-greedy.yaml`` say of Figure 4.12.

Figures 4.8 to 4.11 have queries whose sources follow two vehicles, and 4.13 sizes of events: files cannot say
that.
"""

from dataclasses import dataclass

from benchmarks.mcep.figure_files import ROOT
from benchmarks.migration.moving import Planning
from orchestrator.apps.mcep.migrating import MigrateSection
from orchestrator.apps.mcep.planned import section_of
from orchestrator.planning.load import load_checked
from orchestrator.spec.experiment import Experiment
from orchestrator.spec.sweep import choices
from orchestrator.spec.units import ROOM

FOLDER = ROOT / "experiments" / "mcep"
CAPTURES = {"navigation": "exact", "linear": "linear"}
"""What the file calls knowing the drive is knowing places exactly: it is the drive itself."""


@dataclass(frozen=True)
class Figure412:
    """``states``: bytes of the first operator. ``greedy_s``: seconds between two looks."""

    edge: float
    states: tuple[float, ...]
    captures: tuple[str, ...]
    planning: Planning
    greedy_s: int


def figure_412() -> Figure412:
    planned, greedy = load_checked(FOLDER / "fig4-12.yaml"), load_checked(FOLDER / "fig4-12-greedy.yaml")
    (entry,) = planned.entries().values()
    (query,) = section_of(entry).queries.values()
    plan, baseline = _migrate(planned).plan, _migrate(greedy).greedy
    assert plan is not None and plan.range is not None and baseline is not None and query.edge is not None
    states = tuple(ROOM.read(each.value) for each in choices(planned.sweep["interest.migrate.state.slowing"]))
    captures = tuple(
        CAPTURES[str(each.value)] for each in choices(planned.sweep["interest.migrate.plan.mobiles"])
    )
    whole = Planning(round(plan.step), round(plan.horizon), round(plan.refresh), plan.range)
    return Figure412(query.edge, states, captures, whole, round(baseline.every))


def _migrate(experiment: Experiment) -> MigrateSection:
    (entry,) = experiment.entries().values()
    found = section_of(entry).migrate
    assert found is not None
    return found
