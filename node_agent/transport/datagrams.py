"""Authenticated datagrams between any two nodes, without a connection.

For messages that are sent again soon and are useless when late: nothing is repeated, and nothing waits. A
datagram carries a tag that only its two nodes can make; the tag is checked before anything is parsed.

Nobody can replay what was sent to an earlier start of an agent: each end draws an epoch at random when it
starts, and names the epoch of the other in all that it sends. An end that is named wrongly answers with its
own epoch. Within an epoch the application must tell old messages from new ones, by numbers of its own.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import Struct

from node_agent.model.checked import Checked, Refused
from node_agent.model.refusals import Refusals
from node_agent.ports import Address, DatagramSocket, Port
from node_agent.transport.authentication import ID_SIZE, TAG_SIZE, Credentials, DatagramSeal

MOST_BYTES = 1200
"""Of a datagram with several messages: short enough to cross any link in one piece."""
LONGEST = 8 * 1024
"""Of a datagram with a single message."""
HEADERS = 28
"""Of IP and UDP."""
REFUSED = "datagram"
"""The name under which refused datagrams are counted."""
EPOCH_SIZE = 8
ANSWER_EVERY = 0.2
"""Seconds: how often an end answers at most when somebody repeats an old datagram."""
EPOCHS_KNOWN = 64

_START = ID_SIZE + TAG_SIZE

MessageT = TypeVar("MessageT")

_encode = msgspec.msgpack.Encoder().encode


class Packet(Struct, Generic[MessageT], frozen=True, array_like=True):
    """``epoch`` is the sender's; ``to`` is the receiver's, as the sender knows it."""

    version: int
    epoch: bytes
    to: bytes
    messages: Sequence[MessageT] = ()


class Peer:
    """Another node, as its datagrams show it. ``starts`` counts its epochs."""

    def __init__(self, credentials: Credentials, node: str) -> None:
        self.node = node
        self.key = credentials.to(node, "datagram")
        self.seal = DatagramSeal(self.key)
        self.epoch = b""
        self.starts = 0
        self._answered: dict[bytes, float] = {}
        self._past: deque[bytes] = deque(maxlen=EPOCHS_KNOWN)

    def began(self, epoch: bytes) -> bool:
        """The node is in this epoch now. Return False if it was before, and is not any more."""
        if epoch in self._past:
            return False
        self._past.append(epoch)
        self.epoch = epoch
        self.starts += 1
        return True

    def may_answer(self, epoch: bytes, now: float) -> bool:
        """Whether it is time to answer a datagram of ``epoch``. Each epoch is limited on its own."""
        if now - self._answered.get(epoch, -ANSWER_EVERY) < ANSWER_EVERY:
            return False
        self._answered.pop(epoch, None)
        self._answered[epoch] = now
        if len(self._answered) > EPOCHS_KNOWN:
            del self._answered[next(iter(self._answered))]
        return True


class Datagrams(Generic[MessageT]):
    """One node's end. ``kind`` is the type of the messages; both ends must have the same ``version``.

    ``check`` gets a node and its messages, and returns one word that says why they are refused, or None.
    ``on_messages`` takes what is believed, with the count of the sender's starts: messages of a later start
    are newer. ``on_start`` hears that a node has started; it has believed nothing that was sent before.
    ``refusals`` counts what is refused.
    """

    def __init__(
        self,
        port: Port,
        credentials: Credentials,
        addresses: Mapping[str, Address],
        refusals: Refusals,
        kind: type[MessageT],
        version: int,
        check: Callable[[str, Sequence[MessageT]], str | None],
        on_messages: Callable[[int, Sequence[MessageT]], None],
        on_start: Callable[[str], None],
    ) -> None:
        packets: Any = Packet[kind]  # type: ignore[valid-type]
        self._packets: Checked[Packet[MessageT]] = Checked(packets, LONGEST, "msgpack")
        self._port = port
        self._addresses = addresses
        self._refusals = refusals
        self._version = version
        self._check = check
        self._on_messages = on_messages
        self._on_start = on_start
        self._epoch = port.fresh_bytes(EPOCH_SIZE)
        self._peers = {node: Peer(credentials, node) for node in credentials.keys}
        incoming = credentials.incoming("datagram").values()
        self._incoming = {key.id: (DatagramSeal(key), self._peers[key.node]) for key in incoming}
        self._socket: DatagramSocket | None = None
        self.sent = self.sent_bytes = 0
        """Since the start, with the headers of IP and UDP."""

    async def open(self, port: int) -> None:
        """Listen. Raise PortError."""
        self._socket = await self._port.datagrams(port, self._received)

    def send(self, node: str, messages: Sequence[MessageT]) -> None:
        """Send ``messages`` in as few datagrams as possible. Nobody hears of it if they do not arrive."""
        peer = self._peers[node]
        packed: list[MessageT] = []
        for message in messages:
            if packed and len(self._packet(peer.epoch, [*packed, message])) > MOST_BYTES - _START:
                self._transmit(peer, peer.epoch, packed)
                packed = []
            packed.append(message)
        if packed:
            self._transmit(peer, peer.epoch, packed)

    def close(self) -> None:
        """May be repeated."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _packet(self, to: bytes, messages: Sequence[MessageT]) -> bytes:
        return _encode(Packet(self._version, self._epoch, to, messages))

    def _transmit(self, peer: Peer, to: bytes, messages: Sequence[MessageT]) -> None:
        if self._socket is None:
            return
        data = self._packet(to, messages)
        self._socket.send(peer.key.id + peer.seal.tag(data) + data, self._addresses[peer.node])
        self.sent += 1
        self.sent_bytes += _START + len(data) + HEADERS

    def _received(self, datagram: bytes, sender: Address) -> None:
        seal, peer = self._incoming.get(datagram[:ID_SIZE], (None, None))
        if seal is None or peer is None:
            self._refusals.add(REFUSED, sender.host, "stranger")
            return
        tag, data = datagram[ID_SIZE:_START], datagram[_START:]
        if not seal.genuine(data, tag):
            self._refusals.add(REFUSED, sender.host, "forged")
            return
        try:
            packet = self._packets.decode(data)
        except Refused:
            self._refusals.add(REFUSED, peer.node, "frame")
            return
        reason = self._refusal(packet, peer.node)
        if reason is not None:
            self._refusals.add(REFUSED, peer.node, reason)
        elif packet.to == self._epoch:
            self._believe(peer, packet)
        else:
            self._answer(peer, packet)

    def _refusal(self, packet: Packet[MessageT], node: str) -> str | None:
        if packet.version != self._version:
            return "version"
        if len(packet.epoch) != EPOCH_SIZE:
            return "impossible"
        return self._check(node, packet.messages)

    def _believe(self, peer: Peer, packet: Packet[MessageT]) -> None:
        """The packet was sent to this start of the agent."""
        if packet.epoch != peer.epoch:
            if not peer.began(packet.epoch):
                self._refusals.add(REFUSED, peer.node, "replayed")
                return
            self._on_start(peer.node)
        self._on_messages(peer.starts, packet.messages)

    def _answer(self, peer: Peer, packet: Packet[MessageT]) -> None:
        """The sender does not know the epoch of this start yet: name it."""
        now = asyncio.get_running_loop().time()
        if peer.may_answer(packet.epoch, now):
            self._transmit(peer, packet.epoch, ())
