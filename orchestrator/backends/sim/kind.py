"""The backend ``sim`` as a value: nodes in virtual time."""

from pathlib import Path

from orchestrator.planning.planned import PlannedRun
from orchestrator.runs.backend import Backend
from orchestrator.runs.journal import Journal
from orchestrator.spec.backends import BackendKind, Traits


def _create(run: PlannedRun, run_id: str, directory: Path, journal: Journal) -> Backend:
    from orchestrator.backends.sim.backend import SimBackend

    return SimBackend(run_id, directory, journal)


SIM = BackendKind(
    summary="virtual time on this machine, needs nothing",
    traits=Traits(virtual_time=True, knows_links=True, changes_air=True, link_feedback=True),
    create=_create,
    lacking=list,
    chosen_because="virtual time",
)
