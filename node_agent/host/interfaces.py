"""Reads facts about a network interface from the kernel, by ioctl: no program has to be installed."""

import errno
import fcntl
import socket
import struct
from dataclasses import dataclass

LIMITED_BROADCAST = "255.255.255.255"
NAME_SIZE = 16

_FLAGS, _ADDRESS, _BROADCAST, _NETMASK, _MTU = 0x8913, 0x8915, 0x8919, 0x891B, 0x8921
_HARDWARE = 0x8927
_WIRELESS_NAME = 0x8B01
_REQUEST = struct.Struct("16s24s")
_UP, _LOOPBACK = 0x1, 0x8


class InterfaceError(Exception):
    """The message is one sentence: what is wrong with the interface, and what to do about it."""


@dataclass(frozen=True, slots=True)
class InterfaceFacts:
    name: str
    address: str
    netmask: str
    broadcast: str
    """The address for broadcasts: the network's own, or all ones if it has none."""
    mtu: int
    index: int
    flags: int
    wireless: bool
    hardware: bytes = bytes(6)


def read_interface(name: str) -> InterfaceFacts:
    """Raises InterfaceError if no routing daemon can run on it."""
    if not 0 < len(name.encode()) < NAME_SIZE:
        raise InterfaceError(f"{name!r} cannot be the name of an interface")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        try:
            (flags,) = struct.unpack_from("=H", _ask(asking, _FLAGS, name))
        except OSError:
            raise InterfaceError(f"there is no interface {name}: {_others()}") from None
        try:
            address = _as_address(_ask(asking, _ADDRESS, name))
        except OSError as error:
            if error.errno != errno.EADDRNOTAVAIL:
                raise InterfaceError(f"{name}: {error.strerror}") from None
            raise InterfaceError(
                f"{name} has no IPv4 address: give it one, e.g. ip address add 10.0.0.1/24 dev {name}"
            ) from None
        if flags & _LOOPBACK:
            raise InterfaceError(f"{name} is the loopback interface: no other node is there")
        if not flags & _UP:
            raise InterfaceError(f"{name} is down: ip link set {name} up")
        netmask = _as_address(_ask(asking, _NETMASK, name))
        broadcast = _as_address(_ask(asking, _BROADCAST, name))
        (mtu,) = struct.unpack_from("=i", _ask(asking, _MTU, name))
        wireless = _is_wireless(asking, name)
        hardware = _ask(asking, _HARDWARE, name)[2:8]
    own = broadcast not in ("0.0.0.0", address) and netmask != LIMITED_BROADCAST
    return InterfaceFacts(
        name=name,
        address=address,
        netmask=netmask,
        broadcast=broadcast if own else LIMITED_BROADCAST,
        mtu=mtu,
        index=socket.if_nametoindex(name),
        flags=flags,
        wireless=wireless,
        hardware=hardware,
    )


def _ask(asking: socket.socket, what: int, name: str) -> bytes:
    answer = fcntl.ioctl(asking, what, _REQUEST.pack(name.encode(), b""))
    return answer[NAME_SIZE:]


def _is_wireless(asking: socket.socket, name: str) -> bool:
    try:
        _ask(asking, _WIRELESS_NAME, name)
    except OSError:
        return False
    return True


def _as_address(answer: bytes) -> str:
    return socket.inet_ntoa(answer[4:8])


def _others() -> str:
    names = sorted(name for _, name in socket.if_nameindex() if name != "lo")
    return f"this machine has {', '.join(names)}" if names else "this machine has none but lo"
