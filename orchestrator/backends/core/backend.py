"""Builds the backend ``core``: an experiment's nodes in a CORE session, on the host that runs it."""

from pathlib import Path

from orchestrator.apps.dataflow.faces.galleries import pinned
from orchestrator.apps.dataflow.planning.placement import deployment_plan
from orchestrator.backends.core.infrastructure import HOST, CoreInfrastructure
from orchestrator.backends.remote.backend import RemoteBackend
from orchestrator.runs.journal import Journal
from orchestrator.spec.experiment import Experiment


def core_backend(experiment: Experiment, run_id: str, directory: Path, journal: Journal) -> RemoteBackend:
    plan = pinned(deployment_plan(experiment), directory.resolve()).plan
    infrastructure = CoreInfrastructure(experiment, plan, run_id, directory, journal)
    return RemoteBackend(experiment, run_id, directory, journal, plan, infrastructure, HOST)
