"""Creates the backend that an experiment file names."""

from pathlib import Path

from orchestrator.errors import BadInput
from orchestrator.planning.planned import PlannedRun
from orchestrator.runs.backend import Backend
from orchestrator.runs.journal import Journal
from orchestrator.spec.backends import AUTO, BACKENDS


def create_backend(run: PlannedRun, run_id: str, directory: Path, journal: Journal) -> Backend:
    backend = run.experiment.backend
    if backend == AUTO:
        raise BadInput("backend auto is chosen once for a whole experiment: a sweep cannot vary it")
    return BACKENDS[backend].create(run, run_id, directory, journal)
