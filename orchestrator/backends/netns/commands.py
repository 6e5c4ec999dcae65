"""Commands for the kernel as values: one frozen class per kind of command."""

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Interface, IPv4Network


@dataclass(frozen=True)
class CreateNamespace:
    """Creates the namespace, marks it from inside, and only then gives it its name."""

    name: str
    alias: str


@dataclass(frozen=True)
class SetSysctl:
    """``key``: a path below ``net``. ``if_present``: skipped by a kernel without the key."""

    key: str
    value: int
    if_present: bool = False


@dataclass(frozen=True)
class CreateTap:
    """The radio's end is the device's descriptor. The device outlives it, and ends with its namespace."""

    link: str


@dataclass(frozen=True)
class CreateBridge:
    link: str


@dataclass(frozen=True)
class CreateVeth:
    link: str
    peer_node: str
    peer: str


@dataclass(frozen=True)
class OpenPacketSocket:
    """The radio's end without TAP: a raw socket on ``link``, on behalf of ``node``."""

    link: str
    node: str


@dataclass(frozen=True)
class DisableOffload:
    """Makes frames as they would be on the air: with checksums, none larger than the MTU."""

    link: str


@dataclass(frozen=True)
class SetLink:
    link: str
    alias: str
    mac: str | None = None
    mtu: int | None = None
    queue_length: int | None = None
    master: str | None = None


@dataclass(frozen=True)
class AddAddress:
    link: str
    address: IPv4Interface


@dataclass(frozen=True)
class AddRoute:
    link: str
    destination: IPv4Network
    via: IPv4Address | None


@dataclass(frozen=True)
class AddNeighbour:
    """A permanent entry, so that no ARP is needed for this peer."""

    link: str
    address: IPv4Address
    mac: str


Command = (
    CreateNamespace
    | SetSysctl
    | CreateTap
    | CreateBridge
    | CreateVeth
    | OpenPacketSocket
    | DisableOffload
    | SetLink
    | AddAddress
    | AddRoute
    | AddNeighbour
)


@dataclass(frozen=True)
class Step:
    """A command and the node in whose namespace it runs."""

    node: str
    command: Command
