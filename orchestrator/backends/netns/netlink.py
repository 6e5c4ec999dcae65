"""A minimal rtnetlink client that builds and inspects a node's network, one acknowledged request at a time.

A socket stays in the namespace in which it was opened, so one thread can talk to many namespaces.
"""

import os
import socket
import struct
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Interface, IPv4Network
from types import TracebackType
from typing import NamedTuple, Self

RTM_NEWLINK, RTM_GETLINK = 16, 18
RTM_NEWADDR = 20
RTM_NEWROUTE, RTM_DELROUTE = 24, 25
RTM_NEWNEIGH = 28
RTM_NEWNSID, RTM_DELNSID = 88, 89
GROUP_NSID = 28

_NETLINK_ROUTE = 0
_SOL_NETLINK = 270
_ADD_MEMBERSHIP = 1
_REQUEST, _ACK, _REPLACE, _EXCLUSIVE, _CREATE = 0x1, 0x4, 0x100, 0x200, 0x400
_ERROR = 2
_NESTED = 0x8000

_IFLA_ADDRESS, _IFLA_IFNAME, _IFLA_MTU, _IFLA_MASTER, _IFLA_TXQLEN = 1, 3, 4, 10, 13
_IFLA_LINKINFO, _IFLA_IFALIAS, _IFLA_NET_NS_FD = 18, 20, 28
_INFO_KIND, _INFO_DATA, _VETH_PEER = 1, 2, 1
_IFA_ADDRESS, _IFA_LOCAL, _IFA_BROADCAST = 1, 2, 4
_RTA_DST, _RTA_OIF, _RTA_GATEWAY = 1, 4, 5
_NDA_DST, _NDA_LLADDR = 1, 2
_NETNSA_NSID, _NETNSA_FD = 1, 3
_UP = 1
_PERMANENT = 0x80
_MAIN_TABLE, _BOOT, _UNIVERSE, _LINK, _NOWHERE, _UNICAST = 254, 3, 0, 253, 255, 1
_ONLINK = 4

ROUTE_PROTOCOL = 82
"""Marks the routes that we keep up to date: `ip route` shows ``proto 82``."""

_HEADER = struct.Struct("=IHHII")
_ATTRIBUTE = struct.Struct("=HH")
_LINK_MESSAGE = struct.Struct("=BxHiII")
_REPLY_SIZE = 1 << 16
_TOGETHER = 500


class Order(NamedTuple):
    """One request of many."""

    kind: int
    flags: int
    body: bytes


def attribute(kind: int, payload: bytes) -> bytes:
    padding = -len(payload) % 4
    return _ATTRIBUTE.pack(_ATTRIBUTE.size + len(payload), kind) + payload + bytes(padding)


def attributes(data: bytes) -> dict[int, bytes]:
    found: dict[int, bytes] = {}
    while len(data) >= _ATTRIBUTE.size:
        length, kind = _ATTRIBUTE.unpack_from(data)
        if length < _ATTRIBUTE.size:
            break
        found[kind & ~_NESTED] = data[_ATTRIBUTE.size : length]
        data = data[(length + 3) & ~3 :]
    return found


def _text(kind: int, value: str) -> bytes:
    return attribute(kind, value.encode() + b"\0")


def _number(kind: int, value: int) -> bytes:
    return attribute(kind, struct.pack("=I", value))


def _link(*parts: bytes, up: bool = False) -> bytes:
    flags = _UP if up else 0
    return _LINK_MESSAGE.pack(socket.AF_UNSPEC, 0, 0, flags, flags) + b"".join(parts)


def mac_bytes(mac: str) -> bytes:
    return bytes.fromhex(mac.replace(":", ""))


def new_bridge(name: str) -> bytes:
    return _link(_text(_IFLA_IFNAME, name), attribute(_IFLA_LINKINFO | _NESTED, _text(_INFO_KIND, "bridge")))


def new_veth(name: str, peer: str, peer_namespace: int) -> bytes:
    """Describes a pair: ``name`` here, ``peer`` in the namespace of descriptor ``peer_namespace``."""
    other = _link(_text(_IFLA_IFNAME, peer), _number(_IFLA_NET_NS_FD, peer_namespace))
    data = attribute(_INFO_DATA | _NESTED, attribute(_VETH_PEER | _NESTED, other))
    info = attribute(_IFLA_LINKINFO | _NESTED, _text(_INFO_KIND, "veth") + data)
    return _link(_text(_IFLA_IFNAME, name), info)


def set_link(
    name: str,
    *,
    alias: str,
    mac: str | None = None,
    mtu: int | None = None,
    queue_length: int | None = None,
    master: int | None = None,
    up: bool = True,
) -> bytes:
    parts = [_text(_IFLA_IFNAME, name), attribute(_IFLA_IFALIAS, alias.encode())]
    if mac is not None:
        parts.append(attribute(_IFLA_ADDRESS, mac_bytes(mac)))
    if mtu is not None:
        parts.append(_number(_IFLA_MTU, mtu))
    if queue_length is not None:
        parts.append(_number(_IFLA_TXQLEN, queue_length))
    if master is not None:
        parts.append(_number(_IFLA_MASTER, master))
    return _link(*parts, up=up)


def new_address(link: int, address: IPv4Interface) -> bytes:
    head = struct.pack("=BBBBI", socket.AF_INET, address.network.prefixlen, 0, _UNIVERSE, link)
    local = address.ip.packed
    network = address.network
    wide = network.prefixlen <= 30
    broadcast = attribute(_IFA_BROADCAST, network.broadcast_address.packed) if wide else b""
    return head + attribute(_IFA_LOCAL, local) + attribute(_IFA_ADDRESS, local) + broadcast


def new_route(destination: IPv4Network, via: IPv4Address | None, link: int) -> bytes:
    scope = _LINK if via is None else _UNIVERSE
    head = struct.pack(
        "=BBBBBBBBI", socket.AF_INET, destination.prefixlen, 0, 0, _MAIN_TABLE, _BOOT, scope, _UNICAST, 0
    )
    gateway = b"" if via is None else attribute(_RTA_GATEWAY, via.packed)
    return head + attribute(_RTA_DST, destination.network_address.packed) + gateway + _number(_RTA_OIF, link)


def _host_route(destination: IPv4Address, scope: int, flags: int) -> bytes:
    head = struct.pack(
        "=BBBBBBBBI", socket.AF_INET, 32, 0, 0, _MAIN_TABLE, ROUTE_PROTOCOL, scope, _UNICAST, flags
    )
    return head + attribute(_RTA_DST, destination.packed)


def set_host_route(destination: IPv4Address, via: IPv4Address | None, link: int) -> Order:
    """Sets the route to one host, over a neighbour or (None) directly; replaces an existing one."""
    body = _host_route(destination, _LINK if via is None else _UNIVERSE, 0 if via is None else _ONLINK)
    gateway = b"" if via is None else attribute(_RTA_GATEWAY, via.packed)
    return Order(RTM_NEWROUTE, _CREATE | _REPLACE, body + gateway + _number(_RTA_OIF, link))


def remove_host_route(destination: IPv4Address) -> Order:
    return Order(RTM_DELROUTE, 0, _host_route(destination, _NOWHERE, 0))


def new_neighbour(link: int, address: IPv4Address, mac: str) -> bytes:
    head = struct.pack("=BxxxiHBB", socket.AF_INET, link, _PERMANENT, 0, 0)
    return head + attribute(_NDA_DST, address.packed) + attribute(_NDA_LLADDR, mac_bytes(mac))


def new_namespace_id(number: int, namespace: int) -> bytes:
    return bytes(4) + _number(_NETNSA_NSID, number) + _number(_NETNSA_FD, namespace)


class Netlink:
    """A socket in the namespace of the thread that opened it."""

    def __init__(self, groups: tuple[int, ...] = (), timeout: float = 10.0) -> None:
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _NETLINK_ROUTE)
        self._socket.bind((0, 0))
        self._socket.settimeout(timeout)
        for group in groups:
            self._socket.setsockopt(_SOL_NETLINK, _ADD_MEMBERSHIP, group)

    def create(self, kind: int, body: bytes) -> None:
        """Creates something new; raises OSError with EEXIST if it exists already."""
        self._ask(kind, _ACK | _CREATE | _EXCLUSIVE, body)

    def change(self, kind: int, body: bytes) -> None:
        self._ask(kind, _ACK, body)

    def carry_out(self, orders: Sequence[Order]) -> list[OSError]:
        """Carries out all orders with few system calls. Returns the errors, and stops for none."""
        refused: list[OSError] = []
        for start in range(0, len(orders), _TOGETHER):
            refused += self._carry_out(orders[start : start + _TOGETHER])
        return refused

    def _carry_out(self, orders: Sequence[Order]) -> list[OSError]:
        """Asks for one acknowledgement, of the last order. The kernel
        reports errors of the others before it."""
        last = len(orders)
        messages = []
        for number, (kind, flags, body) in enumerate(orders, start=1):
            asked = _REQUEST | flags | (_ACK if number == last else 0)
            messages.append(_HEADER.pack(_HEADER.size + len(body), kind, asked, number, 0) + body)
        self._socket.send(b"".join(messages))
        refused = []
        while True:
            data = self._socket.recv(_REPLY_SIZE)
            _, _, _, answered, _ = _HEADER.unpack_from(data)
            if error := -struct.unpack_from("=i", data, _HEADER.size)[0]:
                refused.append(OSError(error, os.strerror(error)))
            if answered == last:
                return refused

    def link_index(self, name: str) -> int:
        index: int = _LINK_MESSAGE.unpack_from(self._get_link(name))[2]
        return index

    def link_alias(self, name: str) -> str:
        found = attributes(self._get_link(name)[_LINK_MESSAGE.size :])
        return found.get(_IFLA_IFALIAS, b"").rstrip(b"\0").decode(errors="replace")

    def dead_namespace(self, timeout: float) -> int | None:
        """Returns the id of a namespace that ended, from group GROUP_NSID; None after ``timeout`` seconds."""
        self._socket.settimeout(max(timeout, 0.001))
        try:
            data = self._socket.recv(_REPLY_SIZE)
        except TimeoutError:
            return None
        _, kind, *_ = _HEADER.unpack_from(data)
        ended = attributes(data[_HEADER.size + 4 :]).get(_NETNSA_NSID)
        return struct.unpack("=i", ended)[0] if kind == RTM_DELNSID and ended is not None else None

    def _get_link(self, name: str) -> bytes:
        return self._ask(RTM_GETLINK, 0, _link(_text(_IFLA_IFNAME, name)))

    def _ask(self, kind: int, flags: int, body: bytes) -> bytes:
        self._socket.send(_HEADER.pack(_HEADER.size + len(body), kind, _REQUEST | flags, 0, 0) + body)
        data = self._socket.recv(_REPLY_SIZE)
        length, answer, *_ = _HEADER.unpack_from(data)
        payload = data[_HEADER.size : length]
        if answer == _ERROR and (number := -struct.unpack_from("=i", payload)[0]):
            raise OSError(number, os.strerror(number))
        return payload

    def close(self) -> None:
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
