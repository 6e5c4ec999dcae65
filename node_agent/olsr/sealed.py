"""Adds a seal to OLSR packets, as a last message of our own kind that olsrd ignores."""

from struct import Struct

from node_agent.manet.seal import SIZE, Seal, Unsealed
from node_agent.olsr import wire

SEALED = 240
"""The message type. RFC 3626 leaves 128 to 255 free."""
OVERHEAD = wire.MESSAGE_HEADER_SIZE + SIZE

_LENGTH = Struct("!H")
_HEADER = Struct("!BBHIBBH")
_VALIDITY = 0x10  # the shortest: nothing has to last


def seal_packet(seal: Seal, packet: bytes, sender: int) -> bytes:
    """Returns the packet with its seal. The seal's TTL is 1, so no node forwards it."""
    header = _HEADER.pack(SEALED, _VALIDITY, OVERHEAD, sender, 1, 0, 0)
    return seal.add(_LENGTH.pack(len(packet) + OVERHEAD) + packet[2:] + header, sender)


def open_packet(seal: Seal, data: bytes, sender: int) -> bytes:
    """Returns the packet without its seal. Raises Unsealed."""
    content = seal.check(data, sender)
    if len(content) < wire.PACKET_HEADER_SIZE + wire.MESSAGE_HEADER_SIZE:
        raise Unsealed("unauthenticated")
    packet = content[: -wire.MESSAGE_HEADER_SIZE]
    return _LENGTH.pack(len(packet)) + packet[2:]
