"""From a backend's name in the experiment file to the backend."""

from pathlib import Path

from orchestrator.backends.base import Backend
from orchestrator.backends.sim.backend import SimBackend
from orchestrator.lifecycle.journal import Journal
from orchestrator.spec.experiment import Experiment


def create_backend(experiment: Experiment, run_id: str, directory: Path, journal: Journal) -> Backend:
    match experiment.backend:
        case "sim":
            return SimBackend(run_id, directory, journal)
