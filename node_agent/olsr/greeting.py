"""Announces that a node rates links by our own metric, in a message of our own kind that olsrd ignores.

It goes in front of every HELLO and no further than one hop. It names the hardware address of the interface
that it is sent from, by which radios call their neighbours.
"""

from struct import Struct

from node_agent.olsr import wire

GREETING = 241
"""The message type, next to that of seals. RFC 3626 leaves 128 to 255 free."""

_BODY = Struct("!BB6s")
_VERSION = 1


def encode(hardware: bytes) -> bytes:
    return _BODY.pack(_VERSION, 0, hardware)


def decode(body: bytes) -> bytes:
    """Returns the sender's hardware address. Raises Malformed. Longer messages are of later versions."""
    if len(body) < _BODY.size or not body[0]:
        raise wire.Malformed(f"a greeting of {len(body)} bytes")
    hardware: bytes = _BODY.unpack_from(body)[2]
    return hardware
