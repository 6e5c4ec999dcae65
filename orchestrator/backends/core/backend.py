"""Builds the backend ``core``: an experiment's nodes in a CORE session, on the host that runs it."""

from pathlib import Path

from orchestrator.backends.core.infrastructure import HOST, CoreInfrastructure
from orchestrator.backends.remote.backend import RemoteBackend
from orchestrator.planning.planned import PlannedRun
from orchestrator.runs.journal import Journal


def core_backend(run: PlannedRun, run_id: str, directory: Path, journal: Journal) -> RemoteBackend:
    infrastructure = CoreInfrastructure(run, run_id, directory, journal)
    return RemoteBackend(run, run_id, directory, journal, infrastructure, HOST)
