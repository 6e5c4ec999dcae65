"""How the nodes of an experiment are reached, by what its file says: enough after the run's own end, too."""

from orchestrator.spec.experiment import Experiment
from orchestrator.spec.inventory import Host
from orchestrator.ssh.fleet import AT_ONCE
from orchestrator.ssh.host_keys import KnownHosts, known_hosts_file

_ON_ONE_HOST = 8
"""sshd's usual limit for those who have not logged in yet is ten."""


def hosts_of(experiment: Experiment) -> dict[str, Host]:
    """The machine that each node's files are on."""
    core = experiment.topology.core
    if experiment.traits.shared_host and core is not None:
        return dict.fromkeys(experiment.topology.node_names, core.machine())
    return {name: node.host for name, node in experiment.topology.real_nodes().items()}


def at_once(experiment: Experiment) -> int:
    """How many nodes may be logged in to at the same time: an SSH server turns away what is too much."""
    return _ON_ONE_HOST if experiment.traits.shared_host else AT_ONCE


def known_hosts_of(experiment: Experiment) -> KnownHosts:
    return KnownHosts(known_hosts_file(experiment.topology.name))
