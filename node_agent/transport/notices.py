"""What routers tell each other, carried by datagrams: between any two nodes, without a connection.

Every message is said again within a second or so and is of no use when late. So nothing is worth sending
again, nothing waits behind tuples, and replicas that are not in use need no connection kept alive to be told
something. A datagram carries the tag of the two nodes, which is checked before anything is parsed, and a node
is believed about its own replicas only.

So that nobody can repeat what was said to an agent before it started, every agent draws an epoch when it
starts and names that of the other in all that it says. Who is named wrongly says its epoch, and is told
again. Within an epoch what is old is told by the messages' numbers.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec
from msgspec import Struct, structs

from node_agent.apps.dataflow.model.routing_messages import CostReport, Message, Notice
from node_agent.model.checked import Checked, Refused
from node_agent.model.refusals import Refusals
from node_agent.model.telemetry import RoutingOverhead
from node_agent.ports import Address, DatagramSocket, Port
from node_agent.transport.authentication import ID_SIZE, TAG_SIZE, Credentials, Stamp

VERSION = 2
MOST_BYTES = 1200
"""Of a datagram: short enough to go in one piece over any link."""
LONGEST = 8 * 1024
"""Of one with a single notice whose names are long."""
HEADERS = 28
"""Of IP and UDP."""
PROTOCOL, MESSAGE = "exchange", "costs"
"""Under which names they are counted."""
REFUSED = "datagram"
EPOCH_SIZE = 8
ANSWER_EVERY = 0.2
"""Seconds: an old datagram that somebody repeats makes an agent say its epoch no more often than that."""
EPOCHS_KNOWN = 64
LARGEST_NUMBER, LARGEST_COST = 2**53, 1e15

_START = ID_SIZE + TAG_SIZE

OnNotice = Callable[[Notice], None]


class Packet(Struct, frozen=True, array_like=True):
    """``epoch`` is the sender's, ``to`` what it holds for the receiver's."""

    version: int
    epoch: bytes
    to: bytes
    notices: Sequence[Notice] = ()


_packets: Checked[Packet] = Checked(Packet, LONGEST, "msgpack")
_encode = msgspec.msgpack.Encoder().encode


def refusal(packet: Packet, node: str, node_of: Mapping[str, str]) -> str | None:
    """Why what ``node`` says is not believed; None if it is. ``node_of``: where each replica lives."""
    if packet.version != VERSION:
        return "version"
    if len(packet.epoch) != EPOCH_SIZE:
        return "impossible"
    for notice in packet.notices:
        message = notice.message
        if node_of.get(message.sender) != node:
            return "sender"
        if not all(0 <= number <= most for number, most in _numbers(message)):
            return "impossible"
    return None


def _numbers(message: Message) -> Iterator[tuple[float, float]]:
    """With the most that each may be; nothing compares with what is no number."""
    yield message.number, LARGEST_NUMBER
    if isinstance(message, CostReport):
        costs = [message.cost]
    else:
        yield message.queue, LARGEST_NUMBER
        costs = [message.to_sinks, message.aggregate]
    yield from ((cost, LARGEST_COST) for cost in costs if cost is not None)


class _Peer:
    """Another node. ``starts`` counts its epochs: for us they take the place of its own count of starts."""

    def __init__(self, credentials: Credentials, node: str) -> None:
        self.node = node
        self.outgoing = credentials.to(node, "datagram")
        self.stamp = Stamp(self.outgoing)
        self.epoch = b""
        self.starts = 0
        self.said: Sequence[Notice] = ()
        self._answered: dict[bytes, float] = {}
        self._past: deque[bytes] = deque(maxlen=EPOCHS_KNOWN)

    def began(self, epoch: bytes) -> bool:
        """It is in this epoch now; False: it has been, and is not any more."""
        if epoch in self._past:
            return False
        self._past.append(epoch)
        self.epoch = epoch
        self.starts += 1
        return True

    def may_answer(self, epoch: bytes, now: float) -> bool:
        """Whether it is time to answer who names that epoch; what is repeated of another one takes none."""
        if now - self._answered.get(epoch, -ANSWER_EVERY) < ANSWER_EVERY:
            return False
        self._answered.pop(epoch, None)
        self._answered[epoch] = now
        if len(self._answered) > EPOCHS_KNOWN:
            del self._answered[next(iter(self._answered))]
        return True


class Notices:
    """``node_of``: where each replica of the plan lives. ``on_notice`` takes what is believed, ``refusals``
    counts what is not.
    """

    def __init__(
        self,
        port: Port,
        credentials: Credentials,
        addresses: Mapping[str, Address],
        node_of: Mapping[str, str],
        refusals: Refusals,
        on_notice: OnNotice,
    ) -> None:
        self._port = port
        self._addresses = addresses
        self._node_of = node_of
        self._refusals = refusals
        self._on_notice = on_notice
        self._epoch = port.fresh_bytes(EPOCH_SIZE)
        self._peers = {node: _Peer(credentials, node) for node in credentials.keys}
        incoming = credentials.incoming("datagram").values()
        self._incoming = {way.id: (Stamp(way), self._peers[way.node]) for way in incoming}
        self._socket: DatagramSocket | None = None
        self._sent = self._sent_bytes = 0

    async def open(self, port: int) -> None:
        """Raises PortError."""
        self._socket = await self._port.datagrams(port, self._received)

    def send(self, node: str, notices: Sequence[Notice]) -> None:
        """In as few datagrams as may be. Best effort: who cannot be reached is not told."""
        peer = self._peers[node]
        peer.said = notices
        packed: list[Notice] = []
        for notice in notices:
            if packed and len(self._packet(peer.epoch, [*packed, notice])) > MOST_BYTES - _START:
                self._transmit(peer, peer.epoch, packed)
                packed = []
            packed.append(notice)
        if packed:
            self._transmit(peer, peer.epoch, packed)

    async def read(self) -> tuple[RoutingOverhead, ...]:
        """Since the start, with the headers of UDP and IP; what routers on the way forward is not known."""
        return (RoutingOverhead(PROTOCOL, MESSAGE, self._sent, self._sent_bytes, 0, 0),)

    def close(self) -> None:
        """May be repeated."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _packet(self, to: bytes, notices: Sequence[Notice]) -> bytes:
        return _encode(Packet(VERSION, self._epoch, to, notices))

    def _transmit(self, peer: _Peer, to: bytes, notices: Sequence[Notice]) -> None:
        if self._socket is None:
            return
        data = self._packet(to, notices)
        self._socket.send(peer.outgoing.id + peer.stamp.tag(data) + data, self._addresses[peer.node])
        self._sent += 1
        self._sent_bytes += _START + len(data) + HEADERS

    def _received(self, datagram: bytes, sender: Address) -> None:
        stamp, peer = self._incoming.get(datagram[:ID_SIZE], (None, None))
        if stamp is None or peer is None:
            self._refusals.add(REFUSED, sender.host, "stranger")
            return
        tag, data = datagram[ID_SIZE:_START], datagram[_START:]
        if not stamp.genuine(data, tag):
            self._refusals.add(REFUSED, sender.host, "forged")
            return
        try:
            packet = _packets.decode(data)
        except Refused:
            self._refusals.add(REFUSED, peer.node, "frame")
            return
        reason = refusal(packet, peer.node, self._node_of)
        if reason is not None:
            self._refusals.add(REFUSED, peer.node, reason)
        elif packet.to == self._epoch:
            self._believe(peer, packet)
        else:
            self._answer(peer, packet)

    def _believe(self, peer: _Peer, packet: Packet) -> None:
        """It was said to this start of the agent."""
        if packet.epoch != peer.epoch:
            if not peer.began(packet.epoch):
                self._refusals.add(REFUSED, peer.node, "replayed")
                return
            if peer.said:  # nothing of it was believed so far
                self.send(peer.node, peer.said)
        # A replica says one thing at a time to another: of what contradicts itself, the last counts.
        for notice in {(notice.to, notice.message.sender): notice for notice in packet.notices}.values():
            self._on_notice(Notice(notice.to, structs.replace(notice.message, boot=peer.starts)))

    def _answer(self, peer: _Peer, packet: Packet) -> None:
        """Whoever said it does not know yet that this agent has started."""
        now = asyncio.get_running_loop().time()
        if peer.may_answer(packet.epoch, now):
            self._transmit(peer, packet.epoch, ())
