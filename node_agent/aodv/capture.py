"""Captures packets that the kernel has no route for, with a TUN device and routes into it.

Host routes are more specific and win; all other packets for the network arrive here and wait for a route. The
kernel removes the device and its routes when the descriptor is closed, however the process ends.
"""

import errno
import fcntl
import os
import socket
import struct
from collections.abc import Iterator
from contextlib import suppress
from ipaddress import IPv4Address, IPv4Network
from typing import NamedTuple

_TUN = "/dev/net/tun"
_TUNSETIFF = 0x400454CA
_IFF_TUN, _IFF_NO_PI = 0x0001, 0x1000
_GET_FLAGS, _SET_FLAGS, _SET_MTU = 0x8913, 0x8914, 0x8922
_UP = 1
_TEXT_REQUEST = struct.Struct("16sH22x")
_NUMBER_REQUEST = struct.Struct("16si20x")

_NEW_ROUTE = 24
_REQUEST, _ACK, _EXCLUSIVE, _CREATE = 0x1, 0x4, 0x200, 0x400
_MAIN_TABLE, _LINK, _UNICAST = 254, 253, 1
_DST, _OIF, _PREFSRC = 1, 4, 7
_HEADER = struct.Struct("=IHHII")
_ANSWER_WITHIN_S = 2.0
_HEADER_SIZE = 20


class CannotCapture(Exception):
    """The kernel refused something; the message is one sentence that says what."""


class Captured(NamedTuple):
    """A whole IP packet, with its header's addresses."""

    data: bytes
    source: int
    destination: int


class CaptureDevice:
    def __init__(self, name: str, network: IPv4Network, source: str, mtu: int, protocol: int) -> None:
        """``source``: the address for packets that have none yet; the radio's, not the device's."""
        if network.prefixlen > 30:
            raise CannotCapture(f"{network} has no room for other nodes: name the network of the other nodes")
        self._size = mtu
        try:
            self._descriptor = os.open(_TUN, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            raise CannotCapture(f"{_TUN}: {error.strerror}: packets cannot be held without it") from None
        try:
            request = _TEXT_REQUEST.pack(name.encode(), _IFF_TUN | _IFF_NO_PI)
            fcntl.ioctl(self._descriptor, _TUNSETIFF, request)
            _set_up(name, mtu)
            # The interface's own route is as wide as the network; only its two halves are more specific.
            for half in network.subnets():
                _add_route(half, socket.if_nametoindex(name), source, protocol)
        except OSError as error:
            os.close(self._descriptor)
            raise CannotCapture(f"{name}: {error.strerror}") from None

    def fileno(self) -> int:
        return self._descriptor

    def read(self) -> Iterator[Captured]:
        """Returns all waiting packets. Skips those that are not IPv4."""
        with suppress(BlockingIOError):
            while True:
                data = os.read(self._descriptor, self._size)
                if len(data) >= _HEADER_SIZE and data[0] >> 4 == 4:
                    yield Captured(data, *struct.unpack_from("!II", data, 12))

    def close(self) -> None:
        os.close(self._descriptor)


class Reinjector:
    """Sends captured packets by the kernel's routes as if they had never been captured.

    A raw socket leaves source and TTL unchanged, and no reverse-path filter checks where the packet came
    from, as it would for one that came in over the TUN. The socket is bound to the radio, so it cannot send a
    packet into the TUN again.
    """

    def __init__(self, interface: str) -> None:
        self._packets = _raw_socket(socket.IPPROTO_RAW)
        self._packets.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, interface.encode())
        self._errors = _raw_socket(socket.IPPROTO_ICMP)

    def send(self, packet: Captured) -> bool:
        """Returns False if the kernel did not take the packet."""
        try:
            self._packets.sendto(packet.data, (str(IPv4Address(packet.destination)), 0))
        except OSError:
            return False
        return True

    def report_unreachable(self, packet: Captured) -> None:
        """Sends ICMP "host unreachable" to the packet's sender, so that its
        connection fails at once instead of timing out."""
        body = unreachable(packet.data)
        if body is not None:
            with suppress(OSError):
                self._errors.sendto(body, (str(IPv4Address(packet.source)), 0))

    def close(self) -> None:
        self._packets.close()
        self._errors.close()


def unreachable(packet: bytes) -> bytes | None:
    """Builds ICMP "host unreachable" for ``packet``; None where no such
    answer is allowed (RFC 1122, 3.2.2)."""
    length = (packet[0] & 0x0F) * 4
    is_fragment = struct.unpack_from("!H", packet, 6)[0] & 0x1FFF
    is_error = packet[9] == socket.IPPROTO_ICMP and packet[length : length + 1] not in (b"\x08", b"\x00")
    if is_error or is_fragment:
        return None
    quoted = packet[: length + 8]
    return struct.pack("!BBHI", 3, 1, _checksum(b"\x03\x01" + bytes(6) + quoted), 0) + quoted


def _checksum(data: bytes) -> int:
    total: int = sum(word for (word,) in struct.iter_unpack("!H", data + bytes(len(data) % 2)))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def _raw_socket(protocol: int) -> socket.socket:
    return socket.socket(
        socket.AF_INET, socket.SOCK_RAW | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC, protocol
    )


def _set_up(name: str, mtu: int) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SET_MTU, _NUMBER_REQUEST.pack(name.encode(), mtu))
        _, flags = _TEXT_REQUEST.unpack(
            fcntl.ioctl(any_socket, _GET_FLAGS, _TEXT_REQUEST.pack(name.encode(), 0))
        )
        fcntl.ioctl(any_socket, _SET_FLAGS, _TEXT_REQUEST.pack(name.encode(), flags | _UP))


def _add_route(network: IPv4Network, link: int, source: str, protocol: int) -> None:
    body = struct.pack(
        "=BBBBBBBBI", socket.AF_INET, network.prefixlen, 0, 0, _MAIN_TABLE, protocol, _LINK, _UNICAST, 0
    )
    for kind, value in (
        (_DST, network.network_address.packed),
        (_OIF, struct.pack("=I", link)),
        (_PREFSRC, IPv4Address(source).packed),
    ):
        body += struct.pack("=HH", 4 + len(value), kind) + value
    flags = _REQUEST | _ACK | _CREATE | _EXCLUSIVE
    with socket.socket(
        socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.NETLINK_ROUTE
    ) as kernel:
        kernel.settimeout(_ANSWER_WITHIN_S)
        kernel.send(_HEADER.pack(_HEADER.size + len(body), _NEW_ROUTE, flags, 1, 0) + body)
        (code,) = struct.unpack_from("=i", kernel.recv(4096), _HEADER.size)
    if code:
        raise OSError(
            -code, f"no route for {network}: {os.strerror(-code)}" if code != -errno.EPERM else "needs root"
        )
