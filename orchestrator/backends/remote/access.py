"""How to reach an experiment's nodes, from its file alone, so that it works after the run's end, too."""

from orchestrator.spec.experiment import Experiment
from orchestrator.spec.inventory import Host
from orchestrator.ssh.fleet import AT_ONCE
from orchestrator.ssh.host_keys import KnownHosts, known_hosts_file

_ON_ONE_HOST = 8
"""Below ten, sshd's usual limit of connections that have not logged in yet."""


def hosts_of(experiment: Experiment) -> dict[str, Host]:
    """Returns the machine that holds each node's files."""
    core = experiment.topology.core
    if experiment.traits.shared_host and core is not None:
        return dict.fromkeys(experiment.topology.node_names, core.machine())
    return {name: node.host for name, node in experiment.topology.real_nodes().items()}


def at_once(experiment: Experiment) -> int:
    """Returns how many logins may run at the same time: an SSH server refuses too many."""
    return _ON_ONE_HOST if experiment.traits.shared_host else AT_ONCE


def known_hosts_of(experiment: Experiment) -> KnownHosts:
    return KnownHosts(known_hosts_file(experiment.topology.name))
