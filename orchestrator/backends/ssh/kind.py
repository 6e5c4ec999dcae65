"""The backend ``ssh`` as a value: Raspberry Pis, laptops and phones, each node a machine of its own."""

from pathlib import Path

from orchestrator.backends.remote.timeouts import OVER_A_NETWORK
from orchestrator.planning.planned import PlannedRun
from orchestrator.runs.backend import Backend
from orchestrator.runs.journal import Journal
from orchestrator.spec.backends import BackendKind, Traits
from orchestrator.spec.contacts import ContactRadio
from orchestrator.spec.experiment import Experiment
from orchestrator.spec.problems import Finding


def _create(run: PlannedRun, run_id: str, directory: Path, journal: Journal) -> Backend:
    from orchestrator.backends.ssh.backend import ssh_backend

    return ssh_backend(run, run_id, directory, journal)


def _findings(experiment: Experiment) -> list[Finding]:
    topology = experiment.topology
    findings = []
    without = [node for node in topology.node_names if node not in topology.hosts]
    if without:
        text = f"with backend ssh every node is a machine, and there is no entry for {', '.join(without)}"
        hint = f"write it like {without[0]}: {{host: 192.168.1.21}} (docs/nodes.md)"
        findings.append(Finding(("topology", "hosts"), text, hint))
    if isinstance(topology.radio, ContactRadio):
        text = "real nodes have radios of their own, and contacts are not emulated between them"
        findings.append(Finding(("topology", "radio", "model"), text, "use backend: sim or netns"))
    if topology.wires:
        text = "real nodes have the cables that they have, and none are emulated between them"
        findings.append(Finding(("topology", "wires"), text, "use backend: sim or netns, or leave wires out"))
    running = [name for name, node in topology.real_nodes().items() if node.daemon == "running"]
    if experiment.routing.authenticates and running:
        text = f"the routing daemon of {running[0]} runs already, and does not get the run's key"
        findings.append(Finding(("routing", "authentication"), text, "use daemon: start for all nodes"))
    return findings


SSH = BackendKind(
    summary="machines of their own, each with an entry in the topology's hosts",
    traits=Traits(remote=True, own_machines=True, exclusive=True),
    create=_create,
    timeouts=OVER_A_NETWORK,
    findings=_findings,
)
