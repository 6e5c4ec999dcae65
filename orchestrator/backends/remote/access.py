"""How to reach an experiment's nodes, from its file alone, so that it works after the run's end, too."""

from typing import Protocol

from orchestrator.spec.backends import Traits
from orchestrator.spec.inventory import Host
from orchestrator.spec.topology import Topology
from orchestrator.ssh.fleet import AT_ONCE
from orchestrator.ssh.host_keys import KnownHosts, known_hosts_file

_ON_ONE_HOST = 8
"""Below ten, sshd's usual limit of connections that have not logged in yet."""


class Reached(Protocol):
    """An experiment, or the part of it that says how its nodes are reached."""

    @property
    def topology(self) -> Topology: ...

    @property
    def traits(self) -> Traits: ...


def hosts_of(experiment: Reached) -> dict[str, Host]:
    """Returns the machine that holds each node's files."""
    core = experiment.topology.core
    if experiment.traits.shared_host and core is not None:
        return dict.fromkeys(experiment.topology.node_names, core.machine())
    return {name: node.host for name, node in experiment.topology.real_nodes().items()}


def at_once(experiment: Reached) -> int:
    """Returns how many logins may run at the same time: an SSH server refuses too many."""
    return _ON_ONE_HOST if experiment.traits.shared_host else AT_ONCE


def known_hosts_of(experiment: Reached) -> KnownHosts:
    return KnownHosts(known_hosts_file(experiment.topology.name))
