"""The backend ``core`` as a value: CORE with EMANE, on the host that the topology names."""

from pathlib import Path

from orchestrator.backends.core.checks import core_findings
from orchestrator.backends.remote.timeouts import OVER_A_NETWORK
from orchestrator.planning.planned import PlannedRun
from orchestrator.runs.backend import Backend
from orchestrator.runs.journal import Journal
from orchestrator.spec.backends import BackendKind, Traits
from orchestrator.spec.experiment import Experiment
from orchestrator.spec.problems import Finding
from orchestrator.spec.topology import Topology


def _create(run: PlannedRun, run_id: str, directory: Path, journal: Journal) -> Backend:
    from orchestrator.backends.core.backend import core_backend

    return core_backend(run, run_id, directory, journal)


def _findings(experiment: Experiment) -> list[Finding]:
    topology = experiment.topology
    findings = core_findings(topology.radio, topology.area)
    if topology.wires:
        text = "Rove's sessions of CORE have a radio only, and no wires beside it"
        findings.append(Finding(("wires",), text, "use backend: sim or netns, or leave wires out"))
    if topology.core is None:
        hint = "write it like core: {host: emulator.lab, user: me} (docs/core.md)"
        findings.append(Finding(("core",), "it is not said which host runs CORE", hint))
    return [Finding(("topology", *found.at), found.message, found.hint) for found in findings]


def _facts(topology: Topology) -> dict[str, str]:
    core = topology.core
    if core is None:
        return {}
    return {"CORE": f"on {core.machine()}: core-daemon on {core.daemon}, Python {core.python}"}


CORE = BackendKind(
    summary="CORE with EMANE, on the host that the topology's core names",
    traits=Traits(remote=True, shared_host=True),
    create=_create,
    timeouts=OVER_A_NETWORK,
    findings=_findings,
    facts=_facts,
)
