"""A node on which a supervisor can be started: how it is reached, and what runs there."""

from dataclasses import dataclass
from pathlib import PurePosixPath

from node_agent.host.setup.order import SetupOrder
from orchestrator.deployment.deploy import Deployed
from orchestrator.ssh.connection import Connection

RUNS = "runs"
RECORD = "record"


@dataclass(frozen=True)
class Site:
    """``enter`` prefixes every command that must run on the node itself. It is empty if the SSH server is on
    the node; else it leads from the host into the node, with the rights of the user who logs in.

    ``address`` and ``interface`` are the node's in the MANET. ``setup``: what a privileged helper is to do to
    it before the run, and to undo after it. ``starts_daemon``: False if a routing daemon runs already.
    """

    node: str
    connection: Connection
    deployed: Deployed
    address: str
    interface: str
    enter: tuple[str, ...] = ()
    setup: SetupOrder | None = None
    starts_daemon: bool = True

    def place(self, run_id: str) -> PurePosixPath:
        """Returns the directory of a run on this node; its ``record`` is what gets collected."""
        return PurePosixPath(self.deployed.rove) / RUNS / run_id / self.node

    def command(self, module: str, *arguments: str) -> list[str]:
        """Returns the command that runs one of Rove's modules on the node."""
        return [*self.enter, *self.deployed.command(module, *arguments)]
