"""Carries out the steps of a layout: the only code that changes the kernel's network."""

import array
import fcntl
import os
import socket
import struct
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path

from orchestrator.backends.netns import names, netlink, syscalls
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
from orchestrator.backends.netns.errors import NetworkError
from orchestrator.backends.netns.layout import RADIO_LINK
from orchestrator.backends.netns.netlink import Netlink

TUN_DEVICE = Path("/dev/net/tun")
_SYSCTLS = Path("/proc/sys/net")
_TUNSETIFF, _TUNSETPERSIST = 0x400454CA, 0x400454CB
_IFF_TAP, _IFF_NO_PI = 0x0002, 0x1000
_INTERFACE_REQUEST = struct.Struct("16sH22x")

_SIOCETHTOOL = 0x8946
_ETHTOOL_SWITCHES = {"tx": 0x17, "tso": 0x1F, "gso": 0x24, "gro": 0x2C}
_ETH_P_ALL = 0x0003
_SOL_PACKET, _PACKET_IGNORE_OUTGOING = 263, 23

Descriptors = dict[str, int]
"""For each node, the radio's end of its ``wlan0``: non-blocking, one Ethernet frame per read or write."""


def execute(steps: Iterable[Step], directory: Path = names.HOST_NAMES) -> Descriptors:
    """Carries out ``steps``, naming namespaces in ``directory``; the caller owns the descriptors.

    On NetworkError it closes the descriptors, but named namespaces stay: take them down by their mark.
    """
    return syscalls.in_own_thread(lambda: _execute(steps, directory))


def attach(namespaces: Mapping[str, int]) -> Descriptors:
    """Opens again the TAP in each of these namespaces, after its former holder has closed it."""
    opened: Descriptors = {}

    def take_up() -> Descriptors:
        for node, namespace in namespaces.items():
            syscalls.setns(namespace, syscalls.CLONE_NEWNET)
            opened[node] = open_tap(RADIO_LINK)
        return opened

    try:
        return syscalls.in_own_thread(take_up)
    except OSError as error:
        for descriptor in opened.values():
            os.close(descriptor)
        raise NetworkError(f"cannot open the radio's ends again: {error.strerror}") from error


def _execute(steps: Iterable[Step], directory: Path) -> Descriptors:
    builder = _Builder(directory)
    try:
        for step in steps:
            try:
                builder.carry_out(step)
            except OSError as error:
                raise NetworkError(f"{step.node}: {step.command}: {error.strerror}") from error
        return builder.take_radio_ends()
    finally:
        builder.close()


class _Builder:
    """Moves its thread from namespace to namespace; holds a netlink socket in each."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._namespaces: dict[str, int] = {}
        self._netlinks: dict[str, Netlink] = {}
        self._radio_ends: Descriptors = {}
        self._indices: dict[tuple[str, str], int] = {}
        self._here = ""
        self._held = ExitStack()

    def close(self) -> None:
        self._held.close()
        for descriptor in self._radio_ends.values():
            os.close(descriptor)

    def take_radio_ends(self) -> Descriptors:
        kept, self._radio_ends = self._radio_ends, {}
        return kept

    def carry_out(self, step: Step) -> None:
        match step.command:
            case CreateNamespace(name, alias):
                self._create_namespace(step.node, name, alias)
            case SetSysctl(key, value, if_present):
                self._enter(step.node)
                place = _SYSCTLS / key
                if not if_present or place.exists():
                    place.write_text(str(value))
            case CreateTap(link):
                self._enter(step.node)
                self._radio_ends[step.node] = open_tap(link)
            case OpenPacketSocket(link, node):
                self._enter(step.node)
                self._radio_ends[node] = _open_packet_socket(link)
            case DisableOffload(link):
                self._enter(step.node)
                _disable_offload(link)
            case command:
                self._configure(step.node, command)

    def _configure(self, node: str, command: Command) -> None:
        kernel = self._netlinks[node]
        match command:
            case CreateBridge(link):
                kernel.create(netlink.RTM_NEWLINK, netlink.new_bridge(link))
            case CreateVeth(link, peer_node, peer):
                kernel.create(netlink.RTM_NEWLINK, netlink.new_veth(link, peer, self._namespaces[peer_node]))
            case SetLink(link, alias, mac, mtu, queue_length, master):
                bridge = None if master is None else self._index(node, master)
                message = netlink.set_link(
                    link, alias=alias, mac=mac, mtu=mtu, queue_length=queue_length, master=bridge
                )
                kernel.change(netlink.RTM_NEWLINK, message)
            case AddAddress(link, address):
                kernel.create(netlink.RTM_NEWADDR, netlink.new_address(self._index(node, link), address))
            case AddRoute(link, destination, via):
                kernel.create(
                    netlink.RTM_NEWROUTE, netlink.new_route(destination, via, self._index(node, link))
                )
            case AddNeighbour(link, address, mac):
                kernel.create(
                    netlink.RTM_NEWNEIGH, netlink.new_neighbour(self._index(node, link), address, mac)
                )
            case _:
                raise AssertionError(command)

    def _create_namespace(self, node: str, name: str, alias: str) -> None:
        syscalls.unshare(syscalls.CLONE_NEWNET)
        self._here = node
        kernel = self._held.enter_context(Netlink())
        kernel.change(netlink.RTM_NEWLINK, netlink.set_link("lo", alias=alias))
        descriptor = os.open(syscalls.OWN_NETWORK, os.O_RDONLY | os.O_CLOEXEC)
        self._held.callback(os.close, descriptor)
        names.name_own_namespace(self._directory / name)
        self._namespaces[node] = descriptor
        self._netlinks[node] = kernel

    def _enter(self, node: str) -> None:
        if self._here != node:
            syscalls.setns(self._namespaces[node], syscalls.CLONE_NEWNET)
            self._here = node

    def _index(self, node: str, link: str) -> int:
        key = (node, link)
        if key not in self._indices:
            self._indices[key] = self._netlinks[node].link_index(link)
        return self._indices[key]


def open_tap(link: str) -> int:
    """Creates (or opens again) the TAP ``link`` in the calling thread's namespace.

    It is persistent, because closing a device that is not costs the kernel 16 ms; it ends with its namespace.
    """
    descriptor = os.open(TUN_DEVICE, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        request = _INTERFACE_REQUEST.pack(link.encode(), _IFF_TAP | _IFF_NO_PI)
        fcntl.ioctl(descriptor, _TUNSETIFF, request)
        fcntl.ioctl(descriptor, _TUNSETPERSIST, 1)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _open_packet_socket(link: str) -> int:
    raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC, 0)
    with raw:
        raw.setsockopt(_SOL_PACKET, _PACKET_IGNORE_OUTGOING, 1)
        raw.bind((link, _ETH_P_ALL))
        return raw.detach()


def _disable_offload(link: str) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as any_socket:
        for number in _ETHTOOL_SWITCHES.values():
            value = array.array("I", [number, 0])
            address, _ = value.buffer_info()
            fcntl.ioctl(any_socket, _SIOCETHTOOL, struct.pack("16sP16x", link.encode(), address))
