"""OLSR for scapy: importing this module binds the layers to UDP port 698.

It covers RFC 3626's messages, olsrd's own with link quality, and seals and greetings of our daemons. Sizes
are computed when a packet is built. Unlike the daemon's decoder, these layers show as much as they can of a
broken packet.
"""
# ruff: noqa: RUF012 (scapy wants the fields of a layer as a list in its class)

from collections.abc import Callable, Iterable
from struct import pack

from scapy.fields import (
    AnyField,
    BitEnumField,
    BitField,
    ByteEnumField,
    ByteField,
    FieldLenField,
    FieldListField,
    IPField,
    LongField,
    MACField,
    PacketListField,
    ShortField,
    XShortField,
    XStrFixedLenField,
)
from scapy.layers.inet import UDP
from scapy.packet import Packet, bind_bottom_up, bind_layers

from node_agent.olsr import validity, wire
from node_agent.olsr.greeting import GREETING
from node_agent.olsr.sealed import SEALED

PORT = 698

KINDS = {
    wire.HELLO: "HELLO",
    wire.TC: "TC",
    wire.MID: "MID",
    wire.HNA: "HNA",
    wire.LQ_HELLO: "LQ_HELLO",
    wire.LQ_TC: "LQ_TC",
    SEALED: "SEAL",
    GREETING: "GREETING",
}
LINK_TYPES = {0: "UNSPEC", 1: "ASYM", 2: "SYM", 3: "LOST"}
NEIGHBOUR_TYPES = {0: "NOT", 1: "SYM", 2: "MPR"}


class ValidityField(ByteField):
    """A time in one byte: the value is the raw byte, the seconds are shown."""

    def i2repr(self, pkt: Packet | None, x: int) -> str:
        return f"{validity.seconds(x):g} s"


class Entry(Packet):
    """One entry of a list: the bytes after it belong to the next one."""

    def extract_padding(self, s: bytes) -> tuple[bytes, bytes | None]:
        return b"", s


class OlsrNeighbour(Entry):
    name = "neighbour"
    fields_desc = [IPField("address", "0.0.0.0")]


class OlsrLqNeighbour(Entry):
    """etx_ff, etx_fpm and etx_float use the first two bytes of four; etx_ffeth the others."""

    name = "neighbour"
    fields_desc = [
        IPField("address", "0.0.0.0"),
        ByteField("lq", 0),
        ByteField("nlq", 0),
        ByteField("ffeth_lq", 0),
        ByteField("ffeth_nlq", 0),
    ]


class OlsrNetwork(Entry):
    name = "network"
    fields_desc = [IPField("network", "0.0.0.0"), IPField("netmask", "255.255.255.255")]


def _after(header: int) -> Callable[[Packet], int]:
    return lambda packet: max(0, packet.size - header)


def _group_fields(neighbour: type[Packet]) -> list[AnyField]:
    return [
        BitField("unused", 0, 4),
        BitEnumField("neighbour_type", 0, 2, NEIGHBOUR_TYPES),
        BitEnumField("link_type", 0, 2, LINK_TYPES),
        ByteField("reserved", 0),
        FieldLenField("size", None, length_of="neighbours", adjust=lambda _, length: length + 4),
        PacketListField("neighbours", [], neighbour, length_from=_after(4)),
    ]


class OlsrGroup(Entry):
    name = "group"
    fields_desc = _group_fields(OlsrNeighbour)


class OlsrLqGroup(Entry):
    name = "group"
    fields_desc = _group_fields(OlsrLqNeighbour)


def _hello_fields(group: type[Packet]) -> list[AnyField]:
    return [
        XShortField("reserved", 0),
        ValidityField("htime", validity.encode(2.0)),
        ByteField("willingness", 3),
        PacketListField("groups", [], group),
    ]


class OlsrHello(Packet):
    name = "HELLO"
    fields_desc = _hello_fields(OlsrGroup)


class OlsrLqHello(Packet):
    name = "LQ_HELLO"
    fields_desc = _hello_fields(OlsrLqGroup)


class OlsrTc(Packet):
    name = "TC"
    fields_desc = [
        ShortField("ansn", 0),
        XShortField("reserved", 0),
        PacketListField("neighbours", [], OlsrNeighbour),
    ]


class OlsrLqTc(Packet):
    name = "LQ_TC"
    fields_desc = [
        ShortField("ansn", 0),
        ByteField("lower_border", 255),
        ByteField("upper_border", 255),
        PacketListField("neighbours", [], OlsrLqNeighbour),
    ]


class OlsrMid(Packet):
    name = "MID"
    fields_desc = [FieldListField("aliases", [], IPField("", "0.0.0.0"))]


class OlsrHna(Packet):
    name = "HNA"
    fields_desc = [PacketListField("networks", [], OlsrNetwork)]


class OlsrSeal(Packet):
    name = "SEAL"
    fields_desc = [LongField("time_ms", 0), XStrFixedLenField("tag", bytes(16), 16)]


class OlsrGreeting(Packet):
    name = "GREETING"
    fields_desc = [
        ByteField("version", 1),
        ByteField("reserved", 0),
        MACField("hardware", "00:00:00:00:00:00"),
    ]


class OlsrMessage(Packet):
    name = "message"
    fields_desc = [
        ByteEnumField("kind", 0, KINDS),
        ValidityField("vtime", validity.encode(20.0)),
        ShortField("size", None),
        IPField("originator", "0.0.0.0"),
        ByteField("ttl", 1),
        ByteField("hops", 0),
        ShortField("seqno", 0),
    ]

    def extract_padding(self, s: bytes) -> tuple[bytes, bytes | None]:
        end = max(0, self.size - wire.MESSAGE_HEADER_SIZE)
        return s[:end], s[end:]

    def post_build(self, pkt: bytes, pay: bytes) -> bytes:
        if self.size is None:
            pkt = pkt[:2] + pack("!H", len(pkt) + len(pay)) + pkt[4:]
        return pkt + pay

    def mysummary(self) -> str:
        return self.sprintf("%kind% of %originator% #%seqno% ttl %ttl% hops %hops%")


class Olsr(Packet):
    name = "OLSR"
    fields_desc = [
        ShortField("size", None),
        ShortField("seqno", 0),
        PacketListField("messages", [], OlsrMessage, length_from=_after(wire.PACKET_HEADER_SIZE)),
    ]

    def post_build(self, pkt: bytes, pay: bytes) -> bytes:
        if self.size is None:
            pkt = pack("!H", len(pkt)) + pkt[2:]
        return pkt + pay

    def mysummary(self) -> str:
        return f"#{self.seqno}: " + ", ".join(_summaries(self.messages))


def _summaries(messages: Iterable[Packet]) -> Iterable[str]:
    for message in messages:
        yield message.mysummary() if isinstance(message, OlsrMessage) else message.summary()


for _kind, _body in (
    (wire.HELLO, OlsrHello),
    (wire.TC, OlsrTc),
    (wire.MID, OlsrMid),
    (wire.HNA, OlsrHna),
    (wire.LQ_HELLO, OlsrLqHello),
    (wire.LQ_TC, OlsrLqTc),
    (SEALED, OlsrSeal),
    (GREETING, OlsrGreeting),
):
    bind_layers(OlsrMessage, _body, kind=_kind)
bind_bottom_up(UDP, Olsr, dport=PORT)
bind_bottom_up(UDP, Olsr, sport=PORT)
bind_layers(UDP, Olsr, sport=PORT, dport=PORT)
