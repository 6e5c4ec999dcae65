"""From an experiment to the backend that runs it."""

from pathlib import Path

from orchestrator.errors import BadInput
from orchestrator.runs.backend import Backend
from orchestrator.runs.journal import Journal
from orchestrator.spec.backends import AUTO, BACKENDS
from orchestrator.spec.experiment import Experiment


def create_backend(experiment: Experiment, run_id: str, directory: Path, journal: Journal) -> Backend:
    if experiment.backend == AUTO:
        raise BadInput("backend auto is chosen once for a whole experiment: a sweep cannot vary it")
    return BACKENDS[experiment.backend].create(experiment, run_id, directory, journal)
