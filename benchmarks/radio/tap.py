"""Generates real kernel traffic for the radio's benchmarks:
networks of namespaces, and sockets inside them.
"""

import os
import selectors
import socket
import struct
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, TypeVar

from orchestrator.backends.netns import names, network, syscalls
from orchestrator.backends.netns.checks import checks
from orchestrator.backends.netns.executor import Descriptors
from orchestrator.backends.netns.layout import Layout
from orchestrator.backends.netns.marks import Mark

T = TypeVar("T")
_BLOCK = bytes(1 << 16)


class Network(NamedTuple):
    mark: Mark
    layout: Layout
    ends: Descriptors

    def address(self, node: str) -> str:
        return next(str(entry.radio.ip) for entry in self.layout.nodes if entry.name == node)


def lacking() -> str:
    """Says why this machine cannot run such a benchmark; empty if it can."""
    found = [check.name for check in checks() if not check.ok and check.required]
    return f"needs root and {', '.join(found) or 'network namespaces'}" if os.geteuid() or found else ""


def load_average() -> float:
    return round(os.getloadavg()[0], 2)


@contextmanager
def network_of(layout: Layout) -> Iterator[Network]:
    with tempfile.TemporaryDirectory(prefix="rove-benchmark-") as directory:
        mark = Mark("benchmark", Path(directory))
        ends = network.up(layout, mark)
        try:
            yield Network(mark, layout, ends)
        finally:
            for descriptor in ends.values():
                os.close(descriptor)
            left = network.down(mark)
        if left:
            raise RuntimeError(f"still there: {', '.join(map(str, left))}")


def inside(mark: Mark, node: str, function: Callable[[], T]) -> T:
    """Calls ``function`` in the node's namespace and returns its result. Sockets it opens stay there."""

    def run() -> T:
        descriptor = names.open_namespace(names.HOST_NAMES / mark.namespace(node))
        assert descriptor is not None
        try:
            syscalls.setns(descriptor, syscalls.CLONE_NEWNET)
        finally:
            os.close(descriptor)
        return function()

    return syscalls.in_own_thread(run)


def udp_pair(net: Network, source: str, sink: str) -> tuple[socket.socket, socket.socket]:
    """Returns two sockets; the first is connected to the second."""

    def bound() -> socket.socket:
        udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        udp.bind(("0.0.0.0", 0))
        udp.setblocking(False)
        return udp

    sender, receiver = inside(net.mark, source, bound), inside(net.mark, sink, bound)
    sender.connect((net.address(sink), receiver.getsockname()[1]))
    return sender, receiver


def tcp_pair(
    net: Network,
    source: str,
    sink: str,
    *,
    prepare: Callable[[socket.socket], None] = lambda connection: None,
) -> tuple[socket.socket, socket.socket]:
    """Returns a connection over the radio, both ends non-blocking; ``prepare`` sets options of an end
    beforehand.
    """

    def unconnected() -> socket.socket:
        end = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        end.settimeout(10.0)
        prepare(end)
        return end

    sender = inside(net.mark, source, unconnected)
    with inside(net.mark, sink, unconnected) as server:
        server.bind(("0.0.0.0", 0))
        server.listen()
        sender.connect((net.address(sink), server.getsockname()[1]))
        receiver, _ = server.accept()
    for end in (sender, receiver):
        end.setblocking(False)
        # Close at once: data that waits for an acknowledgement would keep the namespace alive.
        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    return sender, receiver


def stream(flows: Sequence[tuple[socket.socket, socket.socket]], seconds: float) -> int:
    """Keeps every connection full for a while; returns the bytes that arrived."""
    arrived = 0
    end = time.monotonic() + seconds
    with selectors.DefaultSelector() as waiting:
        for sender, receiver in flows:
            waiting.register(sender, selectors.EVENT_WRITE)
            waiting.register(receiver, selectors.EVENT_READ)
        while (left := end - time.monotonic()) > 0:
            for key, mask in waiting.select(left):
                connection = key.fileobj
                assert isinstance(connection, socket.socket)
                if mask & selectors.EVENT_READ:
                    arrived += len(connection.recv(len(_BLOCK)))
                else:
                    connection.send(_BLOCK)
    return arrived
