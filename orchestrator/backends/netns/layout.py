"""Plans the steps that build the nodes' network; ``executor`` carries them out.

Each node has ``wlan0`` (the radio) and ``ctl0``. A bridge in a namespace of its own connects all ``ctl0``, so
that nothing appears in the host's network.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from ipaddress import IPv4Address, IPv4Interface, IPv4Network

from orchestrator.backends.netns.commands import (
    AddAddress,
    AddNeighbour,
    AddRoute,
    Command,
    CreateBridge,
    CreateNamespace,
    CreateTap,
    CreateVeth,
    DisableOffload,
    OpenPacketSocket,
    SetLink,
    SetSysctl,
    Step,
)
from orchestrator.backends.netns.marks import AIR, CONTROL, NODE_NAME, Mark

RADIO_LINK = "wlan0"
CONTROL_LINK = "ctl0"
RADIO_NETWORK = IPv4Network("10.0.0.0/16")
CONTROL_NETWORK = IPv4Network("172.30.0.0/16")

# ``default`` before any interface is created: interfaces copy it. ``ip_forward`` first: it resets others.
_NO_IPV6 = (
    SetSysctl("ipv6/conf/all/disable_ipv6", 1, if_present=True),
    SetSysctl("ipv6/conf/default/disable_ipv6", 1, if_present=True),
)
_SYSCTLS = (
    SetSysctl("ipv4/ip_forward", 1),
    SetSysctl("ipv4/conf/all/rp_filter", 0),
    SetSysctl("ipv4/conf/default/rp_filter", 0),
    SetSysctl("ipv4/conf/all/send_redirects", 0),
    SetSysctl("ipv4/conf/default/send_redirects", 0),
    SetSysctl("ipv4/conf/all/accept_redirects", 0),
    SetSysctl("ipv4/conf/default/accept_redirects", 0),
)


class RadioEnd(StrEnum):
    """How the radio process reads and writes a node's frames."""

    TAP = "tap"
    PACKET = "packet"
    """A veth and a raw socket, where /dev/net/tun cannot be opened. Its queue counts bytes, not frames."""


@dataclass(frozen=True)
class Route:
    destination: IPv4Network
    via: IPv4Address


@dataclass(frozen=True)
class NodeLayout:
    name: str
    radio: IPv4Interface
    control: IPv4Interface
    mac: str
    routes: tuple[Route, ...] = ()


@dataclass(frozen=True)
class Layout:
    nodes: tuple[NodeLayout, ...]
    control: IPv4Interface
    """The bridge's own address on the control network."""
    queue_length: int = 100
    """Frames that wait for the air at a node; further ones are dropped."""
    mtu: int = 1500
    static_neighbours: bool = False
    """Also saves entries of the ARP table, whose limit (gc_thresh3) all namespaces of the host share."""
    radio_end: RadioEnd = RadioEnd.TAP
    ipv6: bool = False
    """Off unless needed: IPv6's own messages would be on the air, too."""


def numbered(
    names: Sequence[str],
    radio: IPv4Network = RADIO_NETWORK,
    control: IPv4Network = CONTROL_NETWORK,
) -> Layout:
    """Numbers the nodes 1, 2, … in both networks in the order of the names;
    the bridge gets the control network's last."""
    nodes = tuple(
        NodeLayout(name, _host(radio, number), _host(control, number), mac_address(number))
        for number, name in enumerate(names, start=1)
    )
    return Layout(nodes, _host(control, control.num_addresses - 2))


def _host(network: IPv4Network, number: int) -> IPv4Interface:
    return IPv4Interface((network[number], network.prefixlen))


def mac_address(number: int) -> str:
    """Returns a locally administered address."""
    return ":".join(f"{byte:02x}" for byte in (0x02, 0x52, *number.to_bytes(4, "big")))


def problems(layout: Layout) -> list[str]:
    """Returns what makes the layout impossible to build; empty if nothing does."""
    found = [
        f"node name {node.name!r}: letters, digits, - and _ only, at most 63"
        for node in layout.nodes
        if not NODE_NAME.fullmatch(node.name)
    ]
    if not layout.nodes:
        found.append("no nodes")
    found += _repeated("node name", (node.name for node in layout.nodes))
    found += _repeated("hardware address", (node.mac for node in layout.nodes))
    found += _repeated("radio address", (str(node.radio.ip) for node in layout.nodes))
    control = [layout.control, *(node.control for node in layout.nodes)]
    found += _repeated("control address", (str(address.ip) for address in control))
    if any(node.radio.network.overlaps(node.control.network) for node in layout.nodes):
        found.append("the radio network and the control network overlap")
    if layout.queue_length < 1:
        found.append(f"queue length {layout.queue_length}: at least 1")
    if not 68 <= layout.mtu <= 1500:
        found.append(f"MTU {layout.mtu}: between 68 and 1500")
    return found


def _repeated(what: str, values: Iterable[str]) -> list[str]:
    return [f"{what} {value} is used {count} times" for value, count in Counter(values).items() if count > 1]


def steps(layout: Layout, mark: Mark) -> tuple[Step, ...]:
    return (*_control_steps(layout, mark), *_air_steps(layout, mark), *_all_node_steps(layout, mark))


def _namespace_commands(node: str, mark: Mark, ipv6: bool = False) -> Iterator[Command]:
    yield CreateNamespace(mark.namespace(node), mark.alias(node))
    if not ipv6:
        yield from _NO_IPV6
    yield from _SYSCTLS


def _control_steps(layout: Layout, mark: Mark) -> Iterator[Step]:
    commands = (
        *_namespace_commands(CONTROL, mark),
        CreateBridge(CONTROL_LINK),
        # A bridge without an address of its own takes that of a port, and changes it as ports come.
        SetLink(CONTROL_LINK, mark.alias(CONTROL), mac=mac_address(0)),
        AddAddress(CONTROL_LINK, layout.control),
    )
    return (Step(CONTROL, command) for command in commands)


def _air_steps(layout: Layout, mark: Mark) -> Iterator[Step]:
    commands = _namespace_commands(AIR, mark) if layout.radio_end is RadioEnd.PACKET else iter(())
    return (Step(AIR, command) for command in commands)


def _all_node_steps(layout: Layout, mark: Mark) -> Iterator[Step]:
    for number, node in enumerate(layout.nodes, start=1):
        alias = mark.alias(node.name)
        port = f"node{number}"
        for command in _namespace_commands(node.name, mark, layout.ipv6):
            yield Step(node.name, command)
        yield Step(node.name, CreateVeth(CONTROL_LINK, CONTROL, port))
        yield Step(CONTROL, SetLink(port, alias, master=CONTROL_LINK))
        yield from _radio_end(layout.radio_end, node.name, port, alias)
        for command in _addressing(layout, node, alias):
            yield Step(node.name, command)


def _radio_end(kind: RadioEnd, node: str, port: str, alias: str) -> Iterator[Step]:
    match kind:
        case RadioEnd.TAP:
            yield Step(node, CreateTap(RADIO_LINK))
        case RadioEnd.PACKET:
            yield Step(node, CreateVeth(RADIO_LINK, AIR, port))
            yield Step(node, DisableOffload(RADIO_LINK))
            yield Step(AIR, DisableOffload(port))
            yield Step(AIR, SetLink(port, alias))
            yield Step(AIR, OpenPacketSocket(port, node))


def _addressing(layout: Layout, node: NodeLayout, alias: str) -> Iterator[Command]:
    yield SetLink(CONTROL_LINK, alias)
    yield AddAddress(CONTROL_LINK, node.control)
    yield SetLink(RADIO_LINK, alias, mac=node.mac, mtu=layout.mtu, queue_length=layout.queue_length)
    yield AddAddress(RADIO_LINK, node.radio)
    for route in node.routes:
        yield AddRoute(RADIO_LINK, route.destination, route.via)
    if layout.static_neighbours:
        for peer in layout.nodes:
            if peer is not node:
                yield AddNeighbour(RADIO_LINK, peer.radio.ip, peer.mac)
