"""Packets with a seal: the last message is one of our own kind, which olsrd does not know and passes over."""

from struct import Struct

from node_agent.manet.seal import SIZE, Seal, Unsealed
from node_agent.olsr import wire

SEALED = 240
"""The kind of message. RFC 3626 leaves 128 to 255 to anybody."""
OVERHEAD = wire.MESSAGE_HEADER_SIZE + SIZE

_LENGTH = Struct("!H")
_HEADER = Struct("!BBHIBBH")
_VALIDITY = 0x10  # the shortest: it says nothing that lasts


def close(seal: Seal, packet: bytes, sender: int) -> bytes:
    """The packet with its seal. Nobody passes the seal on: its TTL is 1."""
    header = _HEADER.pack(SEALED, _VALIDITY, OVERHEAD, sender, 1, 0, 0)
    return seal.close(_LENGTH.pack(len(packet) + OVERHEAD) + packet[2:] + header, sender)


def open_packet(seal: Seal, data: bytes, sender: int) -> bytes:
    """The packet without its seal, as it was before ``close``. Raises Unsealed."""
    content = seal.open(data, sender)
    if len(content) < wire.PACKET_HEADER_SIZE + wire.MESSAGE_HEADER_SIZE:
        raise Unsealed("unauthenticated")
    packet = content[: -wire.MESSAGE_HEADER_SIZE]
    return _LENGTH.pack(len(packet)) + packet[2:]
