"""What the kernel will be told, as values: one frozen class per kind of command."""

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Interface, IPv4Network


@dataclass(frozen=True)
class CreateNamespace:
    """Make the namespace, mark it from inside, and only then give it its name."""

    name: str
    alias: str


@dataclass(frozen=True)
class SetSysctl:
    """``key`` as a path below ``net``. Where ``if_present``, a kernel without the key needs no setting."""

    key: str
    value: int
    if_present: bool = False


@dataclass(frozen=True)
class CreateTap:
    """The radio's end is the device's descriptor; the device outlives it, and ends with its namespace."""

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
    """The radio's end where there is no TAP: raw frames on ``link``, on behalf of ``node``."""

    link: str
    node: str


@dataclass(frozen=True)
class DisableOffload:
    """Frames as they would be on the air: checksums filled in, none larger than the MTU."""

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
    """A permanent entry: no ARP for this peer."""

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
    """A command and the node in whose namespace it is carried out."""

    node: str
    command: Command
