"""From a backend's name in the experiment file to the backend."""

from pathlib import Path

from orchestrator.errors import BadInput
from orchestrator.planning.planned import PlannedRun
from orchestrator.runs.backend import Backend
from orchestrator.runs.journal import Journal


def create_backend(run: PlannedRun, run_id: str, directory: Path, journal: Journal) -> Backend:
    # Imported where they are used: one backend need not have, nor wait for, what another needs.
    match run.experiment.backend:
        case "sim":
            from orchestrator.backends.sim.backend import SimBackend

            return SimBackend(run_id, directory, journal)
        case "netns":
            from orchestrator.backends.netns.backend import NetnsBackend

            return NetnsBackend(run, run_id, directory, journal)
        case "ssh":
            from orchestrator.backends.ssh.backend import ssh_backend

            return ssh_backend(run, run_id, directory, journal)
        case "core":
            from orchestrator.backends.core.backend import core_backend

            return core_backend(run, run_id, directory, journal)
        case "auto":
            raise BadInput("backend auto is chosen once for a whole experiment: a sweep cannot vary it")
