"""A virtual node's network stack: delivers packets to streams and sockets, or forwards them hop by hop."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from msgspec import Struct

from node_agent.ports import Unreachable
from node_agent.ports.virtual.interface import BROADCAST, Frame, Interface
from node_agent.ports.virtual.segment import SYN, Segment, StreamConfig, reset_in_answer_to

BROADCAST_HOST = "255.255.255.255"
IP_HEADER = 20
UDP_HEADER = 8
TTL = 64
LOOPBACK_NS = 10_000  # not zero: a node that sends to itself must not stop the clock
EPHEMERAL_PORTS = range(49152, 65536)


class Clock(Protocol):
    def now_ns(self) -> int: ...

    def call_at_ns(self, when_ns: int, callback: Callable[..., None], *args: Any) -> None: ...


class NextHop(Protocol):
    def __call__(self, destination: str, /) -> str | None:
        """Returns the neighbour (a node) towards ``destination`` (an address), or None."""
        ...


class Datagram(Struct, frozen=True, gc=False):
    """``ttl`` is the one it was sent with; for a broadcast also the
    received one, because nobody forwards it."""

    source_port: int
    destination_port: int
    data: bytes
    ttl: int = TTL

    @property
    def size(self) -> int:
        return UDP_HEADER + len(self.data)


class Packet(Struct, frozen=True, gc=False):
    source: str
    destination: str
    ttl: int
    size: int
    body: Segment | Datagram


class Forwarder(Protocol):
    """Decides about whole packets, in place of a NextHop: it may hold one and ``pass_on`` it later.

    Nodes have the medium's names; ``came_from`` is None for this host's own packets.
    """

    def forward(self, packet: Packet, came_from: str | None) -> bool:
        """Returns False if there is no route; the packet is then lost."""
        ...

    def arrived(self, packet: Packet) -> None:
        """Called when a packet arrives at this host as its destination."""
        ...

    def failed(self, packet: Packet, neighbour: str) -> None:
        """Called when the medium gave up a packet to ``neighbour``."""
        ...


class Endpoint(Protocol):
    """One end of a stream."""

    def on_segment(self, segment: Segment) -> None: ...

    def abort(self) -> None: ...


class Acceptor(Protocol):
    def on_syn(self, syn: Segment, source: str) -> None: ...

    def close(self) -> None: ...


StreamKey = tuple[int, str, int]
"""Local port, remote address, remote port."""
OnPacket = Callable[[Datagram, str], None]


@dataclass
class HostCounters:
    """Counts packets. The medium counts what the interface's own queue drops."""

    sent: int = 0
    received: int = 0
    forwarded: int = 0
    no_route: int = 0
    ttl_expired: int = 0
    lost: int = 0
    """Given up by the medium on the way to the next hop."""


class VirtualHost:
    def __init__(
        self,
        node: str,
        address: str,
        clock: Clock,
        interface: Interface,
        next_hop: NextHop,
        streams: StreamConfig | None = None,
    ) -> None:
        self.node = node
        self.address = address
        self.clock = clock
        self.stream_config = streams or StreamConfig()
        self.counters = HostCounters()
        self._interface = interface
        self._next_hop = next_hop
        self._forwarder: Forwarder | None = None
        self._streams: dict[StreamKey, Endpoint] = {}
        self._acceptors: dict[int, Acceptor] = {}
        self._sockets: dict[int, OnPacket] = {}
        self._last_ephemeral = EPHEMERAL_PORTS.start - 1
        self._up = True
        interface.attach(node, self._received, self._failed)

    def close(self) -> None:
        """Takes the node down: it sends and receives nothing more, and notifies nobody."""
        self._up = False
        for acceptor in list(self._acceptors.values()):
            acceptor.close()
        for stream in list(self._streams.values()):
            stream.abort()
        self._sockets.clear()

    def use_forwarder(self, forwarder: Forwarder | None) -> None:
        """Uses a forwarder in place of the next hops; None: next hops again."""
        self._forwarder = forwarder

    def reaches(self, destination: str) -> bool:
        """Returns True if there is a forwarder: it may have to search for a route first."""
        if destination == self.address or self._forwarder is not None:
            return True
        return self._next_hop(destination) is not None

    def send(self, destination: str, body: Segment | Datagram) -> None:
        if not self._up:
            return
        self.counters.sent += 1
        ttl = body.ttl if isinstance(body, Datagram) else TTL
        packet = Packet(self.address, destination, ttl, IP_HEADER + body.size, body)
        if destination == self.address:
            self.clock.call_at_ns(self.clock.now_ns() + LOOPBACK_NS, self._deliver, packet)
        elif destination == BROADCAST_HOST:
            self._interface.send(Frame(self.node, BROADCAST, packet.size, packet))
        else:
            self._forward(packet, None)

    def pass_on(self, packet: Packet, neighbour: str) -> None:
        if self._up:
            self._interface.send(Frame(self.node, neighbour, packet.size, packet))

    def free_port(self) -> int:
        """Returns a port that no stream, listener or socket here uses."""
        used = {key[0] for key in self._streams} | self._acceptors.keys() | self._sockets.keys()
        for _ in EPHEMERAL_PORTS:
            self._last_ephemeral += 1
            if self._last_ephemeral not in EPHEMERAL_PORTS:
                self._last_ephemeral = EPHEMERAL_PORTS.start
            if self._last_ephemeral not in used:
                return self._last_ephemeral
        raise Unreachable(f"{self.node} has no free port left")

    def bind_stream(self, key: StreamKey, endpoint: Endpoint) -> None:
        self._streams[key] = endpoint

    def release_stream(self, key: StreamKey) -> None:
        self._streams.pop(key, None)

    def bind_listener(self, port: int, acceptor: Acceptor) -> None:
        self._refuse_if_used(port, self._acceptors)
        self._acceptors[port] = acceptor

    def release_listener(self, port: int) -> None:
        self._acceptors.pop(port, None)

    def bind_socket(self, port: int, on_packet: OnPacket) -> None:
        self._refuse_if_used(port, self._sockets)
        self._sockets[port] = on_packet

    def release_socket(self, port: int) -> None:
        self._sockets.pop(port, None)

    def _refuse_if_used(self, port: int, bound: dict[int, Any]) -> None:
        if not 0 < port < 65536:
            raise Unreachable(f"{port} is not a port number")
        if port in bound:
            raise Unreachable(f"port {port} of {self.address} is in use")

    def _received(self, frame: Frame) -> None:
        if not self._up:
            return
        packet: Packet = frame.payload
        destination = packet.destination
        if destination == self.address or destination == BROADCAST_HOST:
            if self._forwarder is not None and destination == self.address:
                self._forwarder.arrived(packet)
            self._deliver(packet)
        elif packet.ttl <= 1:
            self.counters.ttl_expired += 1
        else:
            onward = Packet(packet.source, packet.destination, packet.ttl - 1, packet.size, packet.body)
            if self._forward(onward, frame.source):
                self.counters.forwarded += 1

    def _failed(self, frame: Frame) -> None:
        self.counters.lost += 1
        if self._up and self._forwarder is not None:
            self._forwarder.failed(frame.payload, frame.destination)

    def _forward(self, packet: Packet, came_from: str | None) -> bool:
        if self._forwarder is not None:
            if self._forwarder.forward(packet, came_from):
                return True
        elif (neighbour := self._next_hop(packet.destination)) is not None:
            self._interface.send(Frame(self.node, neighbour, packet.size, packet))
            return True
        self.counters.no_route += 1
        return False

    def _deliver(self, packet: Packet) -> None:
        if not self._up:
            return
        self.counters.received += 1
        body = packet.body
        if isinstance(body, Datagram):
            if on_packet := self._sockets.get(body.destination_port):
                on_packet(body, packet.source)
        elif endpoint := self._streams.get((body.destination_port, packet.source, body.source_port)):
            endpoint.on_segment(body)
        elif body.flags == SYN and body.ack is None and body.destination_port in self._acceptors:
            self._acceptors[body.destination_port].on_syn(body, packet.source)
        elif reset := reset_in_answer_to(body):
            self.send(packet.source, reset)
