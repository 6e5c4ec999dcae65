"""The description of a routing daemon on a node: a few facts and three small functions, for every backend.

Agents, not daemons, show whether it works: ``orchestrator.backends.readiness`` asks whether they have routes
to the nodes that ground truth connects them with.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network
from pathlib import PurePath
from typing import Any, ClassVar, Literal, NamedTuple

from node_agent.linkstate.config import LinkStateConfig
from node_agent.linkstate.overhead import OverheadConfig
from node_agent.manet.membership import ManetConfig
from orchestrator.errors import BadInput, RoveError
from orchestrator.services.program import Argv, Module, executable, library
from orchestrator.services.virtual import VirtualNetwork, VirtualRouting
from orchestrator.spec.backends import Traits
from orchestrator.spec.problems import Finding
from orchestrator.spec.routing import RoutingSection

TrueMetric = Literal["etx", "hops"]
"""What the true links can be counted in."""


class TrueRoutes(NamedTuple):
    """Routes that the testbed sets by the true links. Without ``relays``, only those to direct neighbours."""

    metric: TrueMetric
    relays: bool = True


@dataclass(frozen=True)
class Place:
    """Where a daemon runs: a node, its radio interface, and a directory for the daemon's own files.

    ``network`` holds all nodes; a node's own address is a /32 in it. ``members`` are the addresses of all
    nodes. ``key`` is the group's, for daemons that seal what they send. ``stations``: the file with the
    station table of an emulated radio; None: the kernel has it, if anybody.
    """

    node: str
    address: IPv4Address
    network: IPv4Network
    interface: str
    directory: PurePath
    seed: int
    members: tuple[IPv4Address, ...] = ()
    key: bytes = field(default=b"", repr=False)
    stations: PurePath | None = None

    def manet(self, authentication: bool) -> ManetConfig:
        """Returns the ad-hoc network's description for one of Rove's own daemons."""
        if authentication and not self.key:
            raise ValueError("routing messages are to be authenticated, and there is no key")
        return ManetConfig(
            networks=(str(self.network),),
            members=tuple(str(member) for member in self.members),
            key=self.key if authentication else b"",
        )


@dataclass(frozen=True)
class Executable:
    """A program that must be there, and how to get it. ``libraries``: what it loads by name as it starts."""

    name: str
    advice: str
    libraries: tuple[str, ...] = ()

    @property
    def path(self) -> str | None:
        """On this machine."""
        return executable(self.name)

    @property
    def lacking(self) -> tuple[str, ...]:
        """Returns what of it this machine does not have."""
        if self.path is None:
            return (self.name,)
        return tuple(name for name in self.libraries if library(name) is None)


class RoutingService:
    """One protocol. Its daemon is stopped by SIGTERM, and killed if it does not obey."""

    protocol: ClassVar[str]
    # Its parameters in the experiment file.
    section: ClassVar[type[RoutingSection]]
    # False: nothing runs on the nodes.
    has_daemon: ClassVar[bool] = True
    # What the machine must have; nothing for daemons of our own.
    executables: ClassVar[tuple[Executable, ...]] = ()
    # What each of its processes would import: loaded once, before they are forked.
    modules: ClassVar[tuple[str, ...]] = ()
    # The kernel's number for its routes, by which they are removed if it is killed; None: only it knows them.
    route_protocol: ClassVar[int | None] = None
    # Nodes have IPv6 only where somebody needs it.
    ipv6: ClassVar[bool] = False
    # Whether its daemon is ours and sets the kernel's routes itself, for which a node needs pyroute2.
    sets_kernel_routes: ClassVar[bool] = False

    def __init__(self, routing: Any) -> None:
        """``routing``: a section of the type that is named above."""

    @classmethod
    def runs_in_virtual_time(cls) -> bool:
        return cls.in_virtual_time is not RoutingService.in_virtual_time

    @classmethod
    def runs_on(cls, traits: Traits) -> bool:
        """Whether a backend with these traits can run it."""
        if traits.virtual_time:
            return cls.runs_in_virtual_time()
        routes_by_truth = cls.true_routes is not RoutingService.true_routes
        return cls.has_daemon or (traits.knows_links and routes_by_truth)

    def findings(self, traits: Traits) -> list[Finding]:
        """What of the parameters such a backend cannot do; places are keys of the section."""
        return []

    def in_virtual_time(self, network: VirtualNetwork) -> VirtualRouting:
        """The protocol on virtual hosts; not defined where it does not run there."""
        raise BadInput(f"{self.protocol} does not run in virtual time")

    def true_routes(self) -> TrueRoutes | None:
        """The routes that the testbed sets over the true links; None: the daemon sets them."""
        return None

    def asks_radio(self) -> bool:
        """Whether its daemon reads what the radio knows of its links."""
        return False

    def once_up(self) -> str:
        """Returns a sentence on what to expect of the routes of a network that has just been brought up."""
        return f"{self.protocol} has begun, routes appear within about 10 s"

    def link_state(self) -> LinkStateConfig:
        """How the node's agent gets its costs."""
        raise NotImplementedError

    def overhead(self) -> OverheadConfig | None:
        """Returns where the node's agent reads what the daemon has sent; None if the daemon does not report
        it."""
        return None

    def files(self, place: Place) -> Mapping[str, str]:
        """What must be in the directory before it starts: name → content. They may hold keys: nobody but the
        daemon's user may read them."""
        return {}

    def program(self, place: Place) -> Argv | Module:
        raise NotImplementedError

    def require(self) -> None:
        """Raises RoveError if this machine cannot run it."""
        lacking = [each for each in self.executables if each.lacking]
        if lacking:
            names = " and ".join(name for each in lacking for name in each.lacking)
            advice = "; ".join(each.advice for each in lacking)
            raise RoveError(
                f"routing protocol {self.protocol} needs {names}, which this machine does not have\n"
                f"{advice}; or use protocol: olsr, which comes with Rove"
            )
