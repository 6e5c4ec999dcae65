"""UDP flows of a node: sources that keep to their schedules, and the sinks of what arrives."""

import asyncio
from collections.abc import Callable, Mapping
from typing import NamedTuple

from node_agent.apps.flows.account import ReceivedAccount, SentAccount
from node_agent.apps.flows.events import MOST_SECONDS, FlowPacketReceived, FlowPacketSent
from node_agent.apps.flows.model import Flow
from node_agent.apps.flows.schedule import NS, Schedule
from node_agent.apps.flows.wire import FlowKey, Packet
from node_agent.model.refusals import Refusals
from node_agent.model.telemetry import Event
from node_agent.ports import Address, DatagramSocket, Port
from node_agent.transport.authentication import ID_SIZE

PATIENCE_NS = NS
"""A packet that is later than that is skipped: a node that stood still does not make up for it."""
LARGEST_MOMENT = 2**62
REFUSED = "flow datagram"

Record = Callable[[Event], None]


class Sending(NamedTuple):
    """The source's end of a flow."""

    flow: Flow
    key: FlowKey
    to: Address
    boot: int


async def send_datagrams(
    sending: Sending,
    sends: Schedule,
    account: SentAccount,
    opened_ns: int,
    port: Port,
    socket: DatagramSocket,
    record: Record,
) -> None:
    """Sends every packet when it is due; returns when the schedule ends."""
    flow, key, to, boot = sending
    each = flow.records == "packets"
    for at_ns, size in sends:
        due = opened_ns + at_ns
        now = port.now_ns()
        if now < due:
            await port.sleep((due - now) / NS)
            now = port.now_ns()
        elif now - due > PATIENCE_NS:
            account.skipped += 1 + sends.skip(now - PATIENCE_NS - opened_ns)
            await asyncio.sleep(0)
            continue
        elif account.packets % 64 == 63:
            await asyncio.sleep(0)  # one that is behind its schedule does not keep the others waiting
        number, second = account.send(now, size)
        socket.send(key.datagram(Packet(boot, number, second, now), size), to)
        if each:
            record(FlowPacketSent(flow.name, number, size))


class UdpSink:
    """The sink's end of a flow. A later start of its source begins a new account."""

    def __init__(
        self, flow: Flow, key: FlowKey, opened_ns: Callable[[], int], port: Port, record: Record
    ) -> None:
        self.flow = flow
        self.key = key
        self._opened_ns = opened_ns
        self._port = port
        self._record = record
        self._account: ReceivedAccount | None = None

    def take(self, packet: Packet, size: int, now_ns: int) -> str | None:
        """Count a genuine packet; returns why it is refused, None if it is not."""
        if packet.second > MOST_SECONDS or packet.sent_ns > LARGEST_MOMENT:
            return "impossible"
        account = self._account
        if account is None or packet.boot > account.source_boot:
            self.sample()
            account = self._account = ReceivedAccount(self.flow.name, packet.boot, self._opened_ns())
        elif packet.boot < account.source_boot:
            return "replayed"
        new = account.take(packet.number, packet.second, size, packet.sent_ns, now_ns)
        if new and self.flow.records == "packets":
            boot, number = packet.boot, packet.number
            self._record(FlowPacketReceived(self.flow.name, boot, number, size, packet.sent_ns))
        return None

    def sample(self) -> None:
        if self._account is not None and (sample := self._account.sample(self._port.now_ns())) is not None:
            self._record(sample)


class UdpSinks:
    """What arrives at the socket of the application: genuine packets are counted, others refused."""

    def __init__(self, sinks: Mapping[bytes, UdpSink], port: Port, refusals: Refusals) -> None:
        """``sinks``: by the ids of their flows' keys."""
        self._sinks = sinks
        self._port = port
        self._refusals = refusals

    def received(self, datagram: bytes, sender: Address) -> None:
        now_ns = self._port.now_ns()
        sink = self._sinks.get(datagram[:ID_SIZE])
        if sink is None:
            self._refusals.add(REFUSED, sender.host, "stranger")
            return
        packet = sink.key.read(datagram)
        if packet is None:
            self._refusals.add(REFUSED, sender.host, "forged")
            return
        reason = sink.take(packet, len(datagram), now_ns)
        if reason is not None:
            self._refusals.add(REFUSED, sink.flow.source, reason)
