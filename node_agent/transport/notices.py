"""What routers tell each other, carried by datagrams: between any two nodes, without a connection.

Every message is said again within a second or so and is of no use when late. So nothing is worth sending
again, nothing waits behind tuples, and replicas that are not in use need no connection kept alive to be told
something. A datagram carries the run's tag; that an old one is no news is told by its messages' numbers, but
only to who has heard newer ones: an agent that has just started may be told old news until they expire.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import msgspec
from msgspec import Struct

from node_agent.model.routing_messages import Notice
from node_agent.model.telemetry import RoutingOverhead
from node_agent.ports import Address, DatagramSocket, Port
from node_agent.transport.authentication import TAG_SIZE, Credentials, Stamp

VERSION = 1
MOST_BYTES = 1200
"""Of a datagram: short enough to go in one piece over any link."""
HEADERS = 28
"""Of IP and UDP."""
PROTOCOL, MESSAGE = "exchange", "costs"
"""Under which names they are counted."""

OnNotice = Callable[[Notice], None]


class Packet(Struct, frozen=True, array_like=True):
    version: int
    notices: Sequence[Notice]


_packets = msgspec.msgpack.Decoder(Packet)
_encode = msgspec.msgpack.Encoder().encode


class Notices:
    """``rejected`` counts what came from nobody of the run; ``on_notice`` takes the rest."""

    def __init__(
        self, port: Port, credentials: Credentials, addresses: Mapping[str, Address], on_notice: OnNotice
    ) -> None:
        self.rejected: Counter[str] = Counter()
        self._port = port
        self._stamp = Stamp(credentials)
        self._addresses = addresses
        self._on_notice = on_notice
        self._socket: DatagramSocket | None = None
        self._sent = self._sent_bytes = 0

    async def open(self, port: int) -> None:
        """Raises PortError."""
        self._socket = await self._port.datagrams(port, self._received)

    def send(self, node: str, notices: Sequence[Notice]) -> None:
        """In as few datagrams as may be. Best effort: who cannot be reached is not told."""
        packed: list[Notice] = []
        for notice in notices:
            if packed and len(_encode(Packet(VERSION, [*packed, notice]))) > MOST_BYTES - TAG_SIZE:
                self._transmit(node, packed)
                packed = []
            packed.append(notice)
        if packed:
            self._transmit(node, packed)

    async def read(self) -> tuple[RoutingOverhead, ...]:
        """Since the start, with the headers of UDP and IP; what routers on the way forward is not known."""
        return (RoutingOverhead(PROTOCOL, MESSAGE, self._sent, self._sent_bytes, 0, 0),)

    def close(self) -> None:
        """May be repeated."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _transmit(self, node: str, notices: Sequence[Notice]) -> None:
        if self._socket is None:
            return
        data = _encode(Packet(VERSION, notices))
        self._socket.send(self._stamp.tag(data) + data, self._addresses[node])
        self._sent += 1
        self._sent_bytes += TAG_SIZE + len(data) + HEADERS

    def _received(self, datagram: bytes, sender: Address) -> None:
        tag, data = datagram[:TAG_SIZE], datagram[TAG_SIZE:]
        if not self._stamp.genuine(data, tag):
            self.rejected["forged"] += 1
            return
        try:
            packet = _packets.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError):
            self.rejected["frame"] += 1
            return
        if packet.version != VERSION:
            self.rejected["version"] += 1
            return
        for notice in packet.notices:
            self._on_notice(notice)
