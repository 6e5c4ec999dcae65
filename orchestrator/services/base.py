"""What a routing daemon on a node is: a few facts and three small functions, no matter who starts it.

Whether it works is not asked of the daemon but of the agents: do they know a way to the nodes that ground
truth connects them with (``orchestrator.backends.readiness``)?
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network
from pathlib import PurePath
from typing import ClassVar

from node_agent.linkstate.config import LinkStateConfig
from node_agent.linkstate.overhead import OverheadConfig
from node_agent.manet.membership import ManetConfig
from orchestrator.errors import RoveError
from orchestrator.services.program import Argv, Module, executable


@dataclass(frozen=True)
class Place:
    """Where a daemon lives: a node, its radio interface, and a directory for the daemon's own files.

    ``network`` holds all nodes; a node's own address is a /32 in it. ``members`` are the addresses of all
    nodes. ``key`` is the group's, for daemons that seal what they send.
    """

    node: str
    address: IPv4Address
    network: IPv4Network
    interface: str
    directory: PurePath
    seed: int
    members: tuple[IPv4Address, ...] = ()
    key: bytes = field(default=b"", repr=False)

    def manet(self, authentication: bool) -> ManetConfig:
        """What a daemon of ours is told of its ad-hoc network."""
        if authentication and not self.key:
            raise ValueError("routing messages are to be authenticated, and there is no key")
        return ManetConfig(
            networks=(str(self.network),),
            members=tuple(str(member) for member in self.members),
            key=self.key if authentication else b"",
        )


@dataclass(frozen=True)
class Executable:
    """A program that must be there, and how to get it."""

    name: str
    advice: str

    @property
    def path(self) -> str | None:
        """On this machine."""
        return executable(self.name)


class RoutingService:
    """One protocol's daemon. It is stopped by SIGTERM, and killed if it does not heed that."""

    protocol: ClassVar[str]
    # What the machine must have; nothing for daemons of our own.
    executables: ClassVar[tuple[Executable, ...]] = ()
    # What each of its processes would import: loaded once, before they are forked.
    modules: ClassVar[tuple[str, ...]] = ()
    # The kernel's number for its routes, by which they are removed if it is killed; None: only it knows them.
    route_protocol: ClassVar[int | None] = None
    # Nodes have IPv6 only where somebody needs it.
    ipv6: ClassVar[bool] = False

    def link_state(self) -> LinkStateConfig:
        """How the node's agent gets its costs."""
        raise NotImplementedError

    def overhead(self) -> OverheadConfig | None:
        """Where the node's agent reads what the daemon has sent; None: it does not tell."""
        return None

    def files(self, place: Place) -> Mapping[str, str]:
        """What must be in the directory before it starts: name → content. They may hold keys: nobody but the
        daemon's user may read them."""
        return {}

    def program(self, place: Place) -> Argv | Module:
        raise NotImplementedError

    def require(self) -> None:
        """Raises RoveError if this machine cannot run it."""
        lacking = [each for each in self.executables if each.path is None]
        if lacking:
            names = " and ".join(each.name for each in lacking)
            advice = "; ".join(each.advice for each in lacking)
            raise RoveError(
                f"routing protocol {self.protocol} needs {names}, which this machine does not have\n"
                f"{advice}; or use protocol: olsr, which comes with Rove"
            )
