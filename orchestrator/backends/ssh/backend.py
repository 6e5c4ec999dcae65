"""Makes the backend ``ssh``: the nodes of an experiment are Raspberry Pis, laptops and phones."""

from pathlib import Path

from orchestrator.backends.remote.backend import RemoteBackend
from orchestrator.backends.ssh.machines import Machines
from orchestrator.planning.planned import PlannedRun
from orchestrator.runs.journal import Journal


def ssh_backend(run: PlannedRun, run_id: str, directory: Path, journal: Journal) -> RemoteBackend:
    machines = Machines(run, run_id)
    return RemoteBackend(run, run_id, directory, journal, machines)
