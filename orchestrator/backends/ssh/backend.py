"""The backend ``ssh``: the nodes of an experiment on Raspberry Pis, laptops and phones."""

from pathlib import Path

from orchestrator.apps.dataflow.faces.galleries import pinned
from orchestrator.apps.dataflow.planning.placement import deployment_plan
from orchestrator.backends.remote.backend import RemoteBackend
from orchestrator.backends.ssh.machines import Machines
from orchestrator.runs.journal import Journal
from orchestrator.spec.experiment import Experiment


def ssh_backend(experiment: Experiment, run_id: str, directory: Path, journal: Journal) -> RemoteBackend:
    plan = pinned(deployment_plan(experiment), directory.resolve()).plan
    machines = Machines(experiment, plan, run_id)
    return RemoteBackend(experiment, run_id, directory, journal, plan, machines)
