"""A routing protocol in virtual time: a daemon on every virtual host, in the process of the simulation."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address
from typing import NamedTuple, Protocol

from node_agent.linkstate.base import LinkState
from node_agent.linkstate.overhead import Counts, OverheadSource, refusal_counts
from node_agent.manet.membership import Manet, manet_of
from node_agent.manet.seal import Seal
from node_agent.model.link_layer import LinkLayer, LinkReading, Readings
from node_agent.model.refusals import Refusals
from node_agent.model.telemetry import RoutingOverhead
from node_agent.ports.virtual.host import NextHop, VirtualHost
from node_agent.ports.virtual.port import VirtualPort
from node_agent.transport.keys import derive
from orchestrator.radio.truth import Links

INTERFACE = "wlan0"


class RadioOf(NamedTuple):
    """What a node's radio can tell: its links by the neighbours' names, and its sensitivity."""

    read: Callable[[], Mapping[str, LinkReading]]
    sensitivity_dbm: float


@dataclass(frozen=True)
class VirtualNetwork:
    """The network that a protocol is to run on. ``node_at``: nodes by their addresses. ``radio_of``: what a
    node's radio can tell; None: nothing.
    """

    node_at: Mapping[str, str]
    seed: int
    now_ns: Callable[[], int]
    radio_of: Callable[[str], RadioOf | None] = lambda node: None

    def link_layer(self, node: str) -> LinkLayer | None:
        radio = self.radio_of(node)
        return None if radio is None else VirtualLinkLayer(radio, self.node_at)


def hardware_address(address: str) -> bytes:
    """Returns the hardware address of a virtual host."""
    return b"\x02R" + IPv4Address(address).packed


class VirtualLinkLayer:
    """A virtual host's radio as its routing daemon sees it."""

    def __init__(self, radio: RadioOf, node_at: Mapping[str, str]) -> None:
        self.sensitivity_dbm = radio.sensitivity_dbm
        self._read = radio.read
        self._hardware = {node: hardware_address(address) for address, node in node_at.items()}

    def read(self) -> Readings:
        hardware = self._hardware
        return {hardware[node]: reading for node, reading in self._read().items()}


class Daemon(Protocol):
    async def start(self) -> None: ...

    async def stop(self) -> None: ...


class Joined(NamedTuple):
    """What a node has of routing: its agent's costs and counters, and the daemon, where there is one."""

    link_state: LinkState
    overhead: OverheadSource | None = None
    daemon: Daemon | None = None


class VirtualRouting(Protocol):
    """One protocol on all nodes of a simulation."""

    def next_hop(self, node: str) -> NextHop:
        """For the node's host, which is there before the daemon that will run on it."""
        ...

    def join(self, host: VirtualHost, port: VirtualPort, wanted: Sequence[str]) -> Joined:
        """``wanted``: the addresses whose costs the node's agent will ask for."""
        ...

    def update(self, links: Links) -> None:
        """The true links from now on; protocols find out by themselves."""
        ...


class Group:
    """The nodes of a simulation as an ad-hoc network. Its key, where there is one, follows from the seed."""

    def __init__(self, network: VirtualNetwork, authentication: bool) -> None:
        self.manet: Manet = manet_of((), tuple(network.node_at))
        self._key = derive(str(network.seed).encode(), b"routing") if authentication else b""

    def seal(self, protocol: str, now_ns: Callable[[], int]) -> Seal | None:
        return Seal(self._key, protocol, now_ns) if self._key else None


class Count(Protocol):
    sent: int
    sent_bytes: int
    forwarded: int
    forwarded_bytes: int


class Counted:
    """The counters of a daemon in the same process, by kind of message, and what it refused."""

    def __init__(self, protocol: str, kinds: Mapping[str, Count], refusals: Refusals) -> None:
        self._protocol = protocol
        self._kinds = kinds
        self._refusals = refusals

    async def read(self) -> Counts:
        sent = [
            RoutingOverhead(
                self._protocol, kind, count.sent, count.sent_bytes, count.forwarded, count.forwarded_bytes
            )
            for kind, count in sorted(self._kinds.items())
        ]
        return (*sent, *refusal_counts(self._refusals))
