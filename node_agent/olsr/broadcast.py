"""Broadcast sockets to neighbours, one an interface: on the OS or in virtual time."""

import asyncio
import errno
import socket
from collections.abc import Callable, Iterable
from typing import Protocol

from node_agent.host.interfaces import LIMITED_BROADCAST, InterfaceError, InterfaceFacts, read_interface
from node_agent.ports import Address, Port

OLSR_PORT = 698

_PRECEDENCE = 0xC0  # internetwork control
_LARGEST = 65535
_AT_ONCE = 64
_LOST = (errno.EAGAIN, errno.ENOBUFS, errno.EMSGSIZE, errno.EPERM)

OnPacket = Callable[[bytes, str], None]
"""Called with the packet and its sender's address."""


class BroadcastSocket(Protocol):
    def send(self, data: bytes) -> None:
        """Sends to all neighbours, best effort."""
        ...

    def close(self) -> None:
        """Closes the socket. May be repeated."""
        ...


class Broadcast(Protocol):
    async def open(self, interface: str, on_packet: OnPacket) -> BroadcastSocket:
        """Opens a socket. The node does not receive its own packets."""
        ...


class PortBroadcast:
    """Uses a port's datagrams, for virtual time, where a node has one
    interface and receives 255.255.255.255."""

    def __init__(self, port: Port, udp_port: int = OLSR_PORT) -> None:
        self._port = port
        self._udp_port = udp_port

    async def open(self, interface: str, on_packet: OnPacket) -> BroadcastSocket:
        own = self._port.host
        everybody = Address(LIMITED_BROADCAST, self._udp_port)

        def received(data: bytes, sender: Address) -> None:
            if sender.host != own:
                on_packet(data, sender.host)

        datagrams = await self._port.datagrams(self._udp_port, received)

        class PortSocket:
            def send(self, data: bytes) -> None:
                datagrams.send(data, everybody)

            def close(self) -> None:
                datagrams.close()

        return PortSocket()


class OsBroadcast:
    """Uses UDP sockets bound to their interfaces. Raises InterfaceError if OLSR cannot use an interface."""

    def __init__(
        self, interfaces: Iterable[InterfaceFacts], report: Callable[[str], None], udp_port: int = OLSR_PORT
    ) -> None:
        self._facts = {facts.name: facts for facts in interfaces}
        self._own = frozenset(facts.address for facts in self._facts.values())
        self._report = report
        self._udp_port = udp_port

    async def open(self, interface: str, on_packet: OnPacket) -> BroadcastSocket:
        def received(data: bytes, sender: str) -> None:
            if sender not in self._own:
                on_packet(data, sender)

        return OsBroadcastSocket(self._facts[interface], self._udp_port, received, self._report)


class OsBroadcastSocket:
    """Survives its interface: sends nothing while it is gone, and continues when it is back."""

    def __init__(
        self, facts: InterfaceFacts, udp_port: int, on_packet: OnPacket, report: Callable[[str], None]
    ) -> None:
        self._facts = facts
        self._udp_port = udp_port
        self._on_packet = on_packet
        self._report = report
        self._loop = asyncio.get_running_loop()
        self._troubled = False
        self._closed = False
        self._socket = _open_socket(facts.name, udp_port)
        self._loop.add_reader(self._socket, self._readable)

    def send(self, data: bytes) -> None:
        if self._closed:
            return
        try:
            if self._troubled:
                self._reopen()
            self._socket.sendto(data, (self._facts.broadcast, self._udp_port))
            self._untroubled()
        except InterfaceError:
            pass  # not back yet
        except OSError as error:
            if error.errno not in _LOST:
                self._trouble(error)

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._release()

    def _reopen(self) -> None:
        """Opens a new socket if needed: an old one stays bound to its
        interface, even if another gets its name."""
        facts = read_interface(self._facts.name)
        if facts.index != self._facts.index:
            opened = _open_socket(facts.name, self._udp_port)
            self._release()
            self._facts, self._socket = facts, opened
            self._loop.add_reader(opened, self._readable)

    def _release(self) -> None:
        self._loop.remove_reader(self._socket)
        self._socket.close()

    def _readable(self) -> None:
        for _ in range(_AT_ONCE):
            try:
                data, (sender, _) = self._socket.recvfrom(_LARGEST)
            except BlockingIOError:
                return
            except OSError as error:
                self._trouble(error)
                return
            self._on_packet(data, sender)
            if self._closed:
                return

    def _trouble(self, error: OSError) -> None:
        if not self._troubled:
            self._troubled = True
            self._report(f"{self._facts.name}: {error.strerror}: it is tried again")

    def _untroubled(self) -> None:
        if self._troubled:
            self._troubled = False
            self._report(f"{self._facts.name} is back")


def _open_socket(interface: str, udp_port: int) -> socket.socket:
    """Opens a socket without SO_REUSEADDR, which would let a second daemon share the port and take half of
    the packets.
    """
    opened = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        opened.setblocking(False)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, interface.encode())
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        opened.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, _PRECEDENCE)
        opened.bind(("0.0.0.0", udp_port))
    except OSError as error:
        opened.close()
        raise InterfaceError(_explained(error, interface, udp_port)) from None
    return opened


def _explained(error: OSError, interface: str, udp_port: int) -> str:
    match error.errno:
        case errno.EADDRINUSE:
            return f"UDP port {udp_port} on {interface} is in use: another OLSR daemon runs there"
        case errno.EPERM | errno.EACCES:
            return f"UDP port {udp_port} on {interface} needs root (or CAP_NET_BIND_SERVICE and CAP_NET_RAW)"
        case errno.ENODEV:
            return f"there is no interface {interface}"
        case _:
            return f"{interface}: {error.strerror}"
