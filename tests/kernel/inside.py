"""Looking at a node from inside its namespace."""

import os
import socket
import struct
from collections.abc import Callable
from ipaddress import IPv4Address
from pathlib import Path
from typing import TypeVar

from orchestrator.backends.netns import names, syscalls
from orchestrator.backends.netns.marks import Mark

T = TypeVar("T")


def path_of(mark: Mark, node: str) -> Path:
    return names.HOST_NAMES / mark.namespace(node)


def inside(mark: Mark, node: str, function: Callable[[], T]) -> T:
    """What ``function`` returns in the node's namespace. Sockets it opens stay there."""

    def run() -> T:
        descriptor = names.open_namespace(path_of(mark, node))
        assert descriptor is not None
        try:
            syscalls.setns(descriptor, syscalls.CLONE_NEWNET)
        finally:
            os.close(descriptor)
        return function()

    return syscalls.in_own_thread(run)


def udp_socket(mark: Mark, node: str) -> socket.socket:
    def make() -> socket.socket:
        udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        udp.bind(("0.0.0.0", 0))
        udp.settimeout(5)
        return udp

    return inside(mark, node, make)


def icmp_socket(mark: Mark, node: str) -> socket.socket:
    def make() -> socket.socket:
        icmp = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
        icmp.settimeout(5)
        return icmp

    return inside(mark, node, make)


def send_ping(icmp: socket.socket, to: IPv4Address) -> None:
    request = struct.pack("!BBHHH", 8, 0, 0, 77, 1)
    checksum = ~sum(struct.unpack("!4H", request)) & 0xFFFF
    icmp.sendto(struct.pack("!BBHHH", 8, 0, checksum, 77, 1), (str(to), 0))


def answered(icmp: socket.socket, by: IPv4Address) -> bool:
    """Was the ping answered before the socket's timeout?"""
    while True:
        try:
            packet, (sender, _) = icmp.recvfrom(2048)
        except TimeoutError:
            return False
        if sender == str(by) and packet[20] == 0:
            return True
